"""Ops of a spec, and of a generated module, as a contestant; its arguments are the paths of both."""

from __future__ import annotations

import importlib
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import opgen
from opgen.runtime.threads import set_num_threads
from tools.bench.workers.protocol import Call, Given, Library, first


class Ops(Library):
    name = "opgen"
    version = metadata.version("opgen")
    variants = ("ops",)

    def __init__(self, threads: int, spec: str, module: str) -> None:
        set_num_threads(threads)
        path = Path(module).resolve()
        sys.path.insert(0, str(path.parent))
        self.modules = {Path(spec).stem: opgen.load(spec), path.stem: importlib.import_module(path.stem)}

    def prepare(self, variant: str, case: dict[str, Any], given: Given) -> Call:
        function, inputs = getattr(self.modules[case["module"]], case["op"]), given.inputs
        arguments = [inputs] if "together" in case else inputs
        attributes = case["attributes"]
        return Call(lambda: function(*arguments, **attributes), first)


def library(threads: int, spec: str, module: str) -> Library:
    return Ops(threads, spec, module)
