"""The photograph in, the contact sheet out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def photograph() -> npt.NDArray[np.float64]:
    """Return the portrait of Grace Hopper that matplotlib ships: [height, width, 3] in 0..1."""
    from matplotlib.cbook import get_sample_data
    from PIL import Image

    with Image.open(str(get_sample_data("grace_hopper.jpg", asfileobj=False))) as image:
        return np.asarray(image.convert("RGB"), np.float64) / 255


def save_sheet(path: Path, panels: Sequence[tuple[str, Array]]) -> None:
    """Draw the panels, three a row, each under its title and the size of its picture."""
    rows = -(-len(panels) // 3)
    figure = _drawn(panels, rows, 3, 4.9)
    figure.savefig(path, dpi=80, metadata={"Software": "opgen demo"})


def save_row(path: Path, panels: Sequence[tuple[str, Array]]) -> None:
    """Draw the first panels in one row, as a small picture for a page."""
    figure = _drawn([(title.partition(":")[0], image) for title, image in panels[:ROW]], 1, ROW, 3.5)
    figure.savefig(path, dpi=80, format="jpeg", pil_kwargs={"quality": 85})


ROW = 5
"""Panels of the small picture."""


def _drawn(panels: Sequence[tuple[str, Array]], rows: int, columns: int, height: float) -> Any:
    """Return a figure of rows of panels, each `height` inches high."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, height * rows), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for axis in axes:
        axis.axis("off")
    for axis, (title, image) in zip(axes, panels, strict=False):
        axis.imshow(image, interpolation="nearest")
        rows_of, columns_of = image.shape[:2]
        axis.set_title(f"{title}\n{rows_of} x {columns_of}", fontsize=10)
    return figure
