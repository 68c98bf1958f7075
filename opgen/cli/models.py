"""Models on the command line: which argument is one, and the sizes of its inputs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import click

from opgen.diagnostics import UserError, did_you_mean

if TYPE_CHECKING:
    from opgen.graph.build.model import Model
    from opgen.graph.ir.values import Input, Kind, Outline

_SIZE = re.compile(r"[0-9]{1,18}")

SHAPES = click.option("--shape", "shapes", multiple=True, metavar="INPUT=1,8,8,3", help="The shape of an input.")
DIMS = click.option("--dim", "dims", multiple=True, metavar="NAME=8", help="The size of a named dimension of a model.")


def is_model(text: str) -> bool:
    """Return True if an argument means a file of a model, not an op."""
    return text.lower().endswith(".onnx")


def read_model(path: str) -> Model:
    """Return the model of a file."""
    from opgen.onnx.load import load

    return load(path)


def kinds_of(model: Model | Outline, shapes: Iterable[str], dims: Iterable[str]) -> dict[str, Kind]:
    """Return types and shapes of the inputs: the model's, with its open sizes from `--shape` and `--dim`.

    The first dimension of an input is 1 by default.
    """
    known = {i.name: i for i in model.inputs}
    given = {name: _shape(name, text) for name, text in _pairs("--shape", shapes, known, "input").items()}
    symbols = {size for i in model.inputs for size in i.shape or () if isinstance(size, str)}
    sizes = {name: _size(f"--dim {name}", text) for name, text in _pairs("--dim", dims, symbols, "dimension").items()}
    for name, shape in given.items():  # a size that one input gives holds for the others
        for size, declared in zip(shape, known[name].shape or (), strict=False):
            if isinstance(declared, str):
                sizes.setdefault(declared, size)
    return {i.name: (i.dtype, given.get(i.name) or _filled(i, sizes)) for i in model.inputs}


def _filled(entry: Input, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """Return the shape of an input for which none is given."""
    if entry.shape is None:
        raise UserError(f"input '{entry.name}' may have any shape; give it with --shape {entry.name}=...")
    found: list[int] = []
    for axis, size in enumerate(entry.shape):
        known = size if isinstance(size, int) else sizes.get(size) if size is not None else None
        if known is None and axis == 0:
            known = 1
        if known is None:
            raise UserError(f"input '{entry.name}' has open sizes ({declared(entry)}); {_remedy(entry)}")
        found.append(known)
    return tuple(found)


def _remedy(entry: Input) -> str:
    names = [size for size in (entry.shape or ())[1:] if isinstance(size, str)]
    by_name = " or " + " ".join(f"--dim {name}=..." for name in dict.fromkeys(names)) if names else ""
    return f"give them with --shape {entry.name}=...{by_name}"


def declared(entry: Input) -> str:
    """`float32[batch, 3, ?]`."""
    if entry.shape is None:
        return f"{entry.dtype}, any shape"
    return f"{entry.dtype}[{', '.join('?' if s is None else str(s) for s in entry.shape)}]"


def _pairs(option: str, texts: Iterable[str], known: Iterable[str], what: str) -> dict[str, str]:
    """`NAME=TEXT` pairs, each name known and given once; a name may have `=` in it, the text none."""
    names = list(known)
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.rpartition("=")
        if not equals:
            raise UserError(f"{option} {text}: expected NAME=VALUE")
        if name not in names:
            hint = did_you_mean(name, names) or f"there is {', '.join(names) or 'none'}"
            raise UserError(f"{option} {text}: the model has no {what} '{name}'; {hint}")
        if name in found:
            raise UserError(f"{option} {name} is given twice")
        found[name] = value
    return found


def _shape(name: str, text: str) -> tuple[int, ...]:
    inner = text.strip().removeprefix("[").removesuffix("]")
    return tuple(_size(f"--shape {name}", part) for part in inner.split(",")) if inner.strip() else ()


def _size(option: str, text: str) -> int:
    if not _SIZE.fullmatch(text.strip()):
        raise UserError(f"{option}={text}: expected sizes: integers of at most 18 digits, with commas between them")
    return int(text)
