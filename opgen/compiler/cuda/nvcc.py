"""nvcc, used if NVRTC is not installed."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from opgen.codegen.cuda.program import COMPILE_FLAGS
from opgen.diagnostics import InternalError


def nvcc() -> str | None:
    """Return the path of nvcc: on PATH, in CUDA_HOME or in the usual place."""
    homes = [os.environ.get("CUDA_HOME", ""), os.environ.get("CUDA_PATH", ""), "/usr/local/cuda"]
    places = ["nvcc", *(str(Path(home) / "bin" / "nvcc") for home in homes if home)]
    return next((found for place in places if (found := shutil.which(place))), None)


@functools.lru_cache(maxsize=4)
def version(path: str) -> str:
    """Return nvcc's version, such as `13.0`."""
    done = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    found = re.search(r"release ([0-9.]+)", done.stdout)
    return found.group(1) if found else "unknown"


def compile_nvcc(path: str, source: str, architecture: str) -> bytes:
    """Compile to a cubin for a real architecture (`sm_90`), to PTX for a virtual one (`compute_90`).

    Raises `InternalError` with nvcc's messages.
    """
    real = architecture.startswith("sm_")
    with tempfile.TemporaryDirectory(prefix="opgen-nvcc-") as scratch:
        text, target = Path(scratch) / "kernels.cu", Path(scratch) / "kernels.out"
        text.write_text(source)
        kind = "-cubin" if real else "-ptx"
        command = [path, kind, f"-arch={architecture}", *COMPILE_FLAGS, "-o", str(target), str(text)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise InternalError(f"nvcc for {architecture}:\n{done.stderr or done.stdout}")
        return target.read_bytes()
