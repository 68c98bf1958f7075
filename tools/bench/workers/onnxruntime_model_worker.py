"""ONNX Runtime as a contestant at whole models, as people call it: inputs bound, outputs made by each run."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from tools.bench.workers.protocol import Call, Given, Library, peak_bytes
from tools.models.manifest import read


class OnnxRuntimeModels(Library):
    name = "ONNX Runtime"
    version = str(onnxruntime.__version__)
    variants = ("session",)

    def __init__(self, threads: int) -> None:
        self.options = onnxruntime.SessionOptions()
        self.options.intra_op_num_threads = threads
        self.options.inter_op_num_threads = 1
        self.options.log_severity_level = 3
        self.made: dict[str, Any] = {}

    def prepare(self, variant: str, case: dict[str, Any], given: Given) -> Call:
        manifest = read(Path(case["manifest"]))
        inputs = manifest.draw(int(case["size"]), given.seed)
        begin, before = time.perf_counter(), peak_bytes()
        session = self.made.get(case["manifest"])
        if session is None:
            providers = ["CPUExecutionProvider"]
            session = onnxruntime.InferenceSession(str(manifest.model), self.options, providers=providers)
            self.made[case["manifest"]] = session
        names = [o.name for o in session.get_outputs()]
        results: dict[str, np.ndarray] = dict(zip(names, session.run(None, inputs), strict=True))
        facts = {"ready": time.perf_counter() - begin, "bytes": peak_bytes() - before}
        return Call(lambda: session.run(None, inputs), lambda _: results, facts=facts)


def library(threads: int) -> Library:
    return OnnxRuntimeModels(threads)
