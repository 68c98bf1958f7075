"""Hostile and damaged models."""

from __future__ import annotations

import math
import os
import random
import re
import signal
import traceback
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
from onnx import ModelProto

import opgen
from opgen.diagnostics import UserError
from opgen.graph.ir.values import Input
from opgen.onnx.load import operators
from opgen.runtime.memory.buffers import numpy_dtype
from tests.onnx.mutate import base_models, changed_bytes, changed_field
from tests.verification.attack.finding import FoundError, Target, described, is_typed
from tests.verification.attack.targets import hostile

LONGEST = 2000
"""Characters of a message."""
PATIENCE = 10
"""Seconds of processor time in which a model is refused, or runs."""
MANY = 1 << 16
"""Elements of an input for which values are made; one with more is given an array that does not fit."""


class _LateError(BaseException):
    """The time is over; `running`: a model that is ready runs again and again, which may take as long as it likes."""

    def __init__(self, running: bool) -> None:
        self.running = running


class Models(Target):
    """Hostile and damaged ONNX models: each runs or is refused in a few words, in 10 s and 1 GiB; runs can be ended."""

    name = "models"
    batch = 40
    seconds = 3.0 * PATIENCE
    memory = 1 << 30

    def prepare(self) -> None:
        operators()
        with np.errstate(all="ignore"):  # ONNX's own tests divide by zero as they are made
            self.bases = base_models(random.Random(1))
        self.beside = self.folder / "model"
        (self.beside / "part").mkdir(parents=True)
        for place in (self.beside / "w.bin", self.folder / "w.bin"):
            place.write_bytes(np.arange(6, dtype=np.float32).tobytes())
        (self.beside / "link").symlink_to("w.bin")
        (self.beside / "out").symlink_to(self.folder / "w.bin")
        os.mkfifo(self.beside / "pipe")
        os.environ.update(OPGEN_MODEL_MIB="256", OPGEN_MODEL_GOPS="20", OPGEN_NUM_THREADS="1")

    def attempt(self, choose: random.Random) -> None:
        made = choose.choice(self.bases) if choose.random() < 0.3 else hostile.model(choose)
        if choose.random() < 0.4:
            made = changed_field(made, choose)
        data = made.SerializeToString()
        if choose.random() < 0.2:
            data = changed_bytes(data, choose)
        path = self.beside / "m.onnx"
        path.write_bytes(data)
        shown = f"{len(data)} bytes\n{_text(made)}"
        before = signal.signal(signal.SIGPROF, _stop)
        signal.setitimer(signal.ITIMER_PROF, PATIENCE)
        try:
            compiled = opgen.compile(path if choose.random() < 0.7 else data)
            compiled(*(_drawn(i, choose) for i in compiled.outline.inputs))
        except _LateError as late:
            if not late.running:
                raise FoundError(
                    f"neither refused nor ready after {PATIENCE} s", f"{traceback.format_exc()}\n{shown}"
                ) from None
        except UserError as error:
            if not is_typed(error):
                raise
            _require_short(str(error), shown)
        except Exception as error:
            raise FoundError(described(error), f"{traceback.format_exc()}\n{shown}") from error
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.signal(signal.SIGPROF, before)


def _stop(_: int, frame: FrameType | None) -> None:
    """End an attempt, as Ctrl-C ends it."""
    running = False
    while frame is not None:
        running |= Path(frame.f_code.co_filename).name == "parts.py" and frame.f_code.co_name == "_once"
        frame = frame.f_back
    raise _LateError(running)


def _require_short(said: str, shown: str) -> None:
    if len(said) > LONGEST:
        raise FoundError(f"a message of more than {LONGEST} characters", f"{said[:1000]}\n{shown}")
    if re.search(r"\.op:\d", said):
        raise FoundError("a message that names a place in a spec", f"{said}\n{shown}")


def _drawn(entry: Input, choose: random.Random) -> np.ndarray[Any, Any]:
    """Return values of an input: sizes that are open are small, and sometimes 0."""
    sizes = (
        [2] if entry.shape is None else [s if isinstance(s, int) else choose.choice((2, 3, 3, 0)) for s in entry.shape]
    )
    shape = tuple(sizes) if math.prod(sizes) <= MANY and len(sizes) <= 32 and max(sizes, default=0) <= MANY else (2,)
    source = np.random.default_rng(choose.randrange(1 << 32))
    values = source.standard_normal(shape) if entry.dtype.is_float else source.integers(0, 4, shape)
    return np.asarray(values).astype(numpy_dtype(entry.dtype))


def _text(made: ModelProto) -> str:
    return str(made.graph)[:1500]
