"""opgen as a contestant at whole models: a case is `{"manifest": path, "size": number}`."""

from __future__ import annotations

import time
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

import opgen
from opgen.runtime.threads import set_num_threads
from tools.bench.workers.protocol import Call, Given, Library, peak_bytes
from tools.models.manifest import read


class Models(Library):
    name = "opgen"
    version = metadata.version("opgen")
    variants = ("compiled",)

    def __init__(self, threads: int) -> None:
        set_num_threads(threads)
        self.made: dict[str, Any] = {}

    def prepare(self, variant: str, case: dict[str, Any], given: Given) -> Call:
        manifest = read(Path(case["manifest"]))
        inputs = manifest.draw(int(case["size"]), given.seed)
        begin, before = time.perf_counter(), peak_bytes()
        model = self.made.get(case["manifest"])
        if model is None:
            model = self.made[case["manifest"]] = opgen.compile(manifest.model)
        results: dict[str, np.ndarray] = model.run(inputs)
        facts: dict[str, float] = {
            "ready": time.perf_counter() - begin,
            "bytes": peak_bytes() - before,
            "programs": len(model.programs),
        }
        tensors = [inputs[name] for name in model.input_names]
        return Call(lambda: model(*tensors), lambda _: results, facts=facts)


def library(threads: int) -> Library:
    return Models(threads)
