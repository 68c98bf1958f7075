"""The libraries for comparison, and their interpreters: from options, the environment, or our own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

VARIABLE = "BENCH_PEERS"
"""The environment variable that names interpreters when no option does: `torch=/path/python,tf=/path/python`."""


@dataclass(frozen=True)
class Kind:
    """A library for comparison: people's name for it, its module, the worker that runs it."""

    title: str
    module: str
    script: str
    names: tuple[str, ...]


KINDS = (
    Kind("PyTorch", "torch", "torch_worker", ("torch", "pytorch")),
    Kind("TensorFlow", "tensorflow", "tensorflow_worker", ("tf", "tensorflow")),
    Kind("JAX", "jax", "jax_worker", ("jax",)),
    Kind("ONNX Runtime", "onnxruntime", "onnxruntime_worker", ("ort", "onnxruntime", "onnx")),
)


@dataclass(frozen=True)
class Peer:
    """A library in an interpreter that has it."""

    title: str
    script: str
    python: str


@dataclass(frozen=True)
class Found:
    """The libraries found, and the reasons for the others."""

    peers: tuple[Peer, ...]
    absent: dict[str, str]


class PeerError(Exception):
    """An interpreter was named for a library that nobody knows."""


def find(options: Sequence[str], environment: str = "") -> Found:
    """Look for libraries in the given places: `NAME=PYTHON` for one library, `PYTHON` for all; by default in this
    interpreter.
    """
    named, anywhere = _read(options or [p for p in environment.split(",") if p])
    if not named and not anywhere:
        anywhere = [sys.executable]
    peers, absent = [], {}
    for kind in KINDS:
        pythons = [named[kind.title]] if kind.title in named else anywhere
        python = next((p for p in pythons if importable(p, kind.module)), None)
        if python is not None:
            peers.append(Peer(kind.title, kind.script, python))
        else:
            absent[kind.title] = f"not in {', '.join(pythons)}" if pythons else "no interpreter was named for it"
    return Found(tuple(peers), absent)


def _read(options: Iterable[str]) -> tuple[dict[str, str], list[str]]:
    named: dict[str, str] = {}
    anywhere = []
    for option in options:
        name, separator, python = option.partition("=")
        if not separator:
            anywhere.append(option)
            continue
        kind = next((k for k in KINDS if name.lower() in k.names), None)
        if kind is None:
            known = ", ".join(k.names[0] for k in KINDS)
            raise PeerError(f"expected {known} before '=', given '{name}'")
        named[kind.title] = python
    return named, anywhere


def importable(python: str, module: str) -> bool:
    """Return True if that interpreter exists and finds the module (without importing it)."""
    test = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module!r}) is None)"
    try:
        return subprocess.run([python, "-c", test], check=False, capture_output=True).returncode == 0
    except OSError:
        return False
