"""The ops of a spec as a contestant; its argument is the spec's path."""

from __future__ import annotations

from importlib import metadata
from typing import Any

import opgen
from opgen.runtime.threads import set_num_threads
from tools.bench.workers.protocol import Call, Given, Library


class Ops(Library):
    name = "opgen"
    version = metadata.version("opgen")
    variants = ("ops",)

    def __init__(self, threads: int, spec: str) -> None:
        set_num_threads(threads)
        self.ops = opgen.load(spec)

    def prepare(self, variant: str, case: dict[str, Any], given: Given) -> Call:
        function, inputs = getattr(self.ops, case["op"]), given.inputs
        return Call(lambda: function(*inputs), lambda result: result)


def library(threads: int, spec: str) -> Library:
    return Ops(threads, spec)
