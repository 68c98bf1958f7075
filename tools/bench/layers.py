"""The measured layers, those of `tools/layers.json`, as cases with the work of each."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Literal, TypedDict, get_args

LAYERS = Path(__file__).resolve().parent.parent / "layers.json"

Direction = Literal["forward", "input", "filter"]
"""The measured computation: the op, its gradient by the images, its gradient by the filter."""
Kind = Literal["dense", "depthwise"]
DataFormat = Literal["NHWC", "NCHW"]
DType = Literal["float32", "float64", "bfloat16", "float16"]
DIRECTIONS: tuple[Direction, ...] = get_args(Direction)
FORMATS: tuple[DataFormat, ...] = get_args(DataFormat)
DTYPES: tuple[DType, ...] = get_args(DType)
BYTES: dict[DType, int] = {"float32": 4, "float64": 8, "bfloat16": 2, "float16": 2}

QUICK = ("r50_3_3x3s2", "r50_4_1x1", "mb_14_384")
"""The layers of `--quick`: a dense strided one, a plain one and one with a filter for each channel."""


class Layer(TypedDict, total=False):
    """A layer as the file has it: "dense" ones give `out_channels`, and `groups` if there are several, "depthwise" ones
    `channel_multiplier`.
    """

    name: str
    kind: Kind
    in_height: int
    in_width: int
    in_channels: int
    out_channels: int
    channel_multiplier: int
    groups: int
    filter_height: int
    filter_width: int
    stride: int
    padding: Literal["SAME", "VALID"]
    data_format: str


@dataclass(frozen=True)
class Case:
    """One call, with a square stride and padding SAME or VALID; shapes are those of NHWC for any `data_format`.

    `kind` is "dense" (filter [height, width, in_channels / groups, out_channels]) or "depthwise" ([height, width,
    in_channels, out_channels / in_channels]).
    """

    layer: str
    kind: Kind
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
    data_format: DataFormat = "NHWC"
    dtype: DType = "float32"
    groups: int = 1

    @property
    def name(self) -> str:
        """Layer, batch, direction; format and type where they are not the usual ones."""
        unusual = [word for word in (self.data_format, self.dtype) if word not in ("NHWC", "float32")]
        return "/".join((self.layer, str(self.batch), self.direction, *unusual))

    @property
    def input_shape(self) -> tuple[int, int, int, int]:
        return self.batch, self.in_height, self.in_width, self.in_channels

    @property
    def filter_shape(self) -> tuple[int, int, int, int]:
        if self.kind == "dense":
            return self.filter_height, self.filter_width, self.in_channels // self.groups, self.out_channels
        return self.filter_height, self.filter_width, self.in_channels, self.out_channels // self.in_channels

    @property
    def output_shape(self) -> tuple[int, int, int, int]:
        return self.batch, self._windows(0), self._windows(1), self.out_channels

    @property
    def result_shape(self) -> tuple[int, int, int, int]:
        """Return the shape of the direction's result."""
        return {"forward": self.output_shape, "input": self.input_shape, "filter": self.filter_shape}[self.direction]

    @property
    def flops(self) -> int:
        """Two for each term of the sums, the taps in the padding included: the same in every direction."""
        channels = self.filter_shape[2] if self.kind == "dense" else 1
        terms = self.filter_height * self.filter_width * channels
        return 2 * terms * math.prod(self.output_shape)

    @property
    def bytes(self) -> int:
        """Return the least bytes to move: both arguments once and the result once."""
        elements = sum(math.prod(shape) for shape in (self.input_shape, self.filter_shape, self.output_shape))
        return BYTES[self.dtype] * elements

    def _windows(self, axis: int) -> int:
        size = (self.in_height, self.in_width)[axis]
        taps = (self.filter_height, self.filter_width)[axis]
        return -(-size // self.stride) if self.padding == "SAME" else (size - taps) // self.stride + 1

    def as_json(self) -> dict[str, object]:
        """Return the description for a worker: the fields and the three shapes."""
        shapes = {"input_shape": self.input_shape, "filter_shape": self.filter_shape, "output_shape": self.output_shape}
        return {**asdict(self), **shapes}


@dataclass(frozen=True)
class Tensors:
    """The arguments of all cases: random numbers from a seed, in arrays at an offset in bytes from a cache line.

    0 is the offset of the libraries' own results, 16 that of most of numpy's arrays.  A peer that makes tensors of its
    own chooses their place.
    """

    seed: int = 0
    offset: int = 0


@dataclass(frozen=True)
class Choice:
    """Selection of cases of the layers: every combination of these."""

    batches: tuple[int, ...] = (1,)
    directions: tuple[Direction, ...] = ("forward",)
    formats: tuple[DataFormat, ...] = ("NHWC",)
    dtypes: tuple[DType, ...] = ("float32",)


def read_layers(path: Path) -> list[Layer]:
    """Return the layers of a file."""
    layers: list[Layer] = json.loads(path.read_text(encoding="utf-8"))["layers"]
    return layers


def read_cases(path: Path, choice: Choice, names: tuple[str, ...] = ()) -> list[Case]:
    """Return the layers of a file in each combination chosen; only those named, if any are."""
    return cases_of(read_layers(path), choice, names, str(path))


def cases_of(layers: Sequence[Layer], choice: Choice, names: tuple[str, ...] = (), source: str = "") -> list[Case]:
    """Layers of a `source` in each combination chosen; only those named, if any are."""
    unknown = sorted(set(names) - {layer["name"] for layer in layers})
    if unknown:
        raise SystemExit(f"no layer named {', '.join(unknown)} in {source}")
    chosen = [layer for layer in layers if not names or layer["name"] in names]
    combinations = list(product(choice.directions, choice.formats, choice.dtypes, choice.batches))
    return [_case(layer, *combination) for layer in chosen for combination in combinations]


def _case(layer: Layer, direction: Direction, data_format: DataFormat, dtype: DType, batch: int) -> Case:
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
        direction=direction,
        data_format=data_format,
        dtype=dtype,
        groups=layer.get("groups", 1),
    )


def _outputs_of_multiplier(layer: Layer) -> int:
    return layer["in_channels"] * layer["channel_multiplier"]


TINY = Case("tiny", "dense", 1, 3, 3, 1, 1, 1, 1, 1, "VALID")
"""A call with nine multiplications: its time is the overhead of a call."""
