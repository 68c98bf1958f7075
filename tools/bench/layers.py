"""What is measured: the layers of `tools/layers.json` as cases, with the work each of them is."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, TypedDict

LAYERS = Path(__file__).resolve().parent.parent / "layers.json"

Direction = Literal["forward"]
"""Which of an op's computations is measured."""

QUICK = ("r50_3_3x3s2", "r50_4_1x1", "mb_14_384")
"""A dense strided layer, a plain one and one with a filter for each channel: what `--quick` measures."""


class Layer(TypedDict, total=False):
    """A layer as the file has it: "dense" ones give `out_channels`, "depthwise" ones `channel_multiplier`."""

    name: str
    kind: Literal["dense", "depthwise"]
    in_height: int
    in_width: int
    in_channels: int
    out_channels: int
    channel_multiplier: int
    filter_height: int
    filter_width: int
    stride: int
    padding: Literal["SAME", "VALID"]
    data_format: str


@dataclass(frozen=True)
class Case:
    """One call: float32 images [batch, height, width, channels], a square stride, padding SAME or VALID.

    `kind` is "dense" (filter [height, width, in_channels, out_channels]) or "depthwise" ([height, width, in_channels,
    out_channels / in_channels]).
    """

    layer: str
    kind: Literal["dense", "depthwise"]
    batch: int
    in_height: int
    in_width: int
    in_channels: int
    out_channels: int
    filter_height: int
    filter_width: int
    stride: int
    padding: Literal["SAME", "VALID"]
    direction: Direction = "forward"

    @property
    def name(self) -> str:
        return f"{self.layer}/{self.batch}/{self.direction}"

    @property
    def input_shape(self) -> tuple[int, int, int, int]:
        return self.batch, self.in_height, self.in_width, self.in_channels

    @property
    def filter_shape(self) -> tuple[int, int, int, int]:
        last = self.out_channels // (self.in_channels if self.kind == "depthwise" else 1)
        return self.filter_height, self.filter_width, self.in_channels, last

    @property
    def output_shape(self) -> tuple[int, int, int, int]:
        return self.batch, self._windows(0), self._windows(1), self.out_channels

    @property
    def flops(self) -> int:
        """Two for each term of the sums, the taps in the padding included."""
        terms = self.filter_height * self.filter_width * (1 if self.kind == "depthwise" else self.in_channels)
        return 2 * terms * _product(self.output_shape)

    @property
    def bytes(self) -> int:
        """What must at least move: both arguments once and the result once."""
        return 4 * (_product(self.input_shape) + _product(self.filter_shape) + _product(self.output_shape))

    def _windows(self, axis: int) -> int:
        size = (self.in_height, self.in_width)[axis]
        taps = (self.filter_height, self.filter_width)[axis]
        return -(-size // self.stride) if self.padding == "SAME" else (size - taps) // self.stride + 1

    def as_json(self) -> dict[str, object]:
        """What a worker is told: the fields and the three shapes."""
        shapes = {"input_shape": self.input_shape, "filter_shape": self.filter_shape, "output_shape": self.output_shape}
        return {**asdict(self), **shapes}


def read_cases(path: Path, batches: tuple[int, ...], names: tuple[str, ...] = ()) -> list[Case]:
    """The layers of a file at each batch size; only those named, if any are."""
    layers: list[Layer] = json.loads(path.read_text(encoding="utf-8"))["layers"]
    unknown = sorted(set(names) - {layer["name"] for layer in layers})
    if unknown:
        raise SystemExit(f"no layer named {', '.join(unknown)} in {path}")
    chosen = [layer for layer in layers if not names or layer["name"] in names]
    return [_case(layer, batch) for layer in chosen for batch in batches]


def _case(layer: Layer, batch: int) -> Case:
    if layer.get("data_format", "NHWC") != "NHWC":
        raise SystemExit(f"layer {layer['name']}: only NHWC layers can be compared")
    return Case(
        layer=layer["name"],
        kind=layer["kind"],
        batch=batch,
        in_height=layer["in_height"],
        in_width=layer["in_width"],
        in_channels=layer["in_channels"],
        out_channels=layer["out_channels"] if "out_channels" in layer else _outputs_of_multiplier(layer),
        filter_height=layer["filter_height"],
        filter_width=layer["filter_width"],
        stride=layer["stride"],
        padding=layer["padding"],
    )


def _outputs_of_multiplier(layer: Layer) -> int:
    return layer["in_channels"] * layer["channel_multiplier"]


def _product(shape: tuple[int, ...]) -> int:
    total = 1
    for size in shape:
        total *= size
    return total


TINY = Case("tiny", "dense", 1, 3, 3, 1, 1, 1, 1, 1, "VALID")
"""A call with nine multiplications: what it takes is the overhead of a call."""
