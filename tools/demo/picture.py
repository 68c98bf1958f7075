"""The photograph in, the contact sheet out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def photograph() -> npt.NDArray[np.float64]:
    """The portrait of Grace Hopper that matplotlib ships: [height, width, 3] in 0..1."""
    from matplotlib.cbook import get_sample_data
    from PIL import Image

    with Image.open(str(get_sample_data("grace_hopper.jpg", asfileobj=False))) as image:
        return np.asarray(image.convert("RGB"), np.float64) / 255


def save_sheet(path: Path, panels: Sequence[tuple[str, Array]]) -> None:
    """Draws the panels, three a row, each under its title and the size of what it shows."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    rows = -(-len(panels) // 3)
    figure = Figure(figsize=(12, 4.9 * rows), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, 3, squeeze=False).ravel()
    for axis in axes:
        axis.axis("off")
    for axis, (title, image) in zip(axes, panels, strict=False):
        axis.imshow(image, interpolation="nearest")
        height, width = image.shape[:2]
        axis.set_title(f"{title}\n{height} x {width}", fontsize=10)
    figure.savefig(path, dpi=80, metadata={"Software": "opgen demo"})
