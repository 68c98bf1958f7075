"""Inputs of a model: `NAME.json` beside `NAME.onnx`, with two sizes of inputs and the distribution of their values."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Input:
    """An input at one size.  Floats are normal; integers are whole numbers from `low` to `high`, both included, also
    where the type is a float's.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    low: int | None = None
    high: int | None = None

    def draw(self, generator: np.random.Generator) -> Array:
        """Values for it."""
        if self.low is None or self.high is None:
            return generator.standard_normal(self.shape).astype(self.dtype)
        return generator.integers(self.low, self.high + 1, self.shape).astype(self.dtype)


Inputs = tuple[Input, ...]


@dataclass(frozen=True)
class Manifest:
    """A model's name and file, its description, and its inputs at each size."""

    name: str
    model: Path
    about: str
    sizes: tuple[Inputs, ...]

    def draw(self, size: int, seed: int = 0) -> dict[str, Array]:
        """Return the values of the inputs at the size of that number, the same for a seed everywhere."""
        generator = np.random.default_rng([seed, size])
        return {i.name: i.draw(generator) for i in self.sizes[size]}


def write(manifest: Manifest) -> None:
    """Write the manifest next to the model."""
    sizes = [[asdict(i) for i in inputs] for inputs in manifest.sizes]
    value = {"model": manifest.model.name, "about": manifest.about, "sizes": sizes}
    path = manifest.model.with_name(f"{manifest.name}.json")
    path.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")


def read(path: Path) -> Manifest:
    """Return a manifest that `write` wrote."""
    value = json.loads(path.read_text(encoding="utf-8"))
    sizes = tuple(tuple(Input(**{**i, "shape": tuple(i["shape"])}) for i in inputs) for inputs in value["sizes"])
    return Manifest(path.stem, path.with_name(value["model"]), value["about"], sizes)


def read_all(folder: Path, names: Iterable[str] = ()) -> list[Manifest]:
    """Return the manifests of a folder, or those of these names, sorted; FileNotFoundError if one is missing."""
    wanted = sorted(names) or sorted(p.stem for p in folder.glob("*.json") if p.with_suffix(".onnx").exists())
    return [read(folder / f"{name}.json") for name in wanted]
