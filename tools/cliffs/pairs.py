"""Pairs of calls that should take as long, each made from a seed."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import opgen

Array = npt.NDArray[Any]
Call = Callable[[], object]


@dataclass(frozen=True)
class Pair:
    """Two calls, and how much work the first does for each unit of the second's; `same`: they have equal results."""

    about: str
    first: tuple[str, Call]
    second: tuple[str, Call]
    work: float = 1.0
    same: bool = True


Maker = Callable[[random.Random], Pair]


def loaded(text: str) -> Any:
    """Return the ops of a spec's text."""
    with tempfile.TemporaryDirectory(prefix="opgen-cliffs-") as folder:
        path = Path(folder, "cliff.op")
        path.write_text(text, encoding="utf-8")
        return opgen.load(path)


def drawn(rng: random.Random, *shape: int) -> Array:
    """Normal float32 elements."""
    return np.random.default_rng(rng.randrange(1 << 32)).standard_normal(shape).astype(np.float32)


def of_ops(text: str, about: str, inputs: Sequence[Array], attrs: Mapping[str, int] | None = None) -> Pair:
    """Return the ops `Natural` and `Split` of a spec, called with the same inputs."""
    ops, given = loaded(text), dict(attrs or {})
    return Pair(
        about,
        ("natural", lambda: ops.natural(*inputs, **given)),
        ("split", lambda: ops.split(*inputs, **given)),
    )
