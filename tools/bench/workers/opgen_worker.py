"""The generated module as a contestant: `opgen_worker.py GENERATED_MODULE.py`."""

from __future__ import annotations

import importlib
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from opgen.runtime.threads import set_num_threads
from tools.bench.workers.protocol import Library, Run, serve


class Generated(Library):
    name = "opgen"
    variants = ("generated",)

    def __init__(self, module: Path) -> None:
        self.version = metadata.version("opgen")
        sys.path.insert(0, str(module.parent))
        self.ops = importlib.import_module(module.stem)

    def prepare(self, variant: str, case: dict[str, Any], data: np.ndarray, weights: np.ndarray, threads: int) -> Run:
        set_num_threads(threads)
        function = self.ops.conv2d if case["kind"] == "dense" else self.ops.depthwise_conv2d_native
        strides = [1, case["stride"], case["stride"], 1]
        padding = case["padding"]
        return lambda: function(data, weights, strides, padding)

    def to_numpy(self, result: Any) -> np.ndarray:
        return np.asarray(result)


if __name__ == "__main__":
    serve(Generated(Path(sys.argv[1]).resolve()))
