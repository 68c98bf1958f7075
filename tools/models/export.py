"""Networks of PyTorch as ONNX models, with their sizes open."""

from __future__ import annotations

import math
from pathlib import Path

import torch
from torch import Tensor, nn

from tools.models.catalogue import Entry, Network
from tools.models.language import Bert, Gpt, Lstm
from tools.models.vision import Scale, UNet, convnext_tiny, efficientnet_b0, mobilenet_v2, resnet50

NETWORKS = {
    "resnet50": resnet50,
    "mobilenet_v2": mobilenet_v2,
    "efficientnet_b0": efficientnet_b0,
    "convnext_tiny": convnext_tiny,
    "unet": UNet,
    "bert": Bert,
    "gpt": Gpt,
    "lstm": Lstm,
}

AXES = {0: "batch", 1: "length", 2: "height", 3: "width"}
"""Names of open dimensions."""


def export(entry: Entry, source: Network, path: Path, seed: int) -> None:
    """Write the model (and next to it its weights, if they are external)."""
    torch.manual_seed(seed)
    network: nn.Module = randomised(NETWORKS[source.kind](), seed)
    names = [i.name for i in entry.sizes[1]]
    drawn = tuple(_example(i.dtype, i.shape) for i in entry.sizes[1])
    if source.traced:
        kept = torch.onnx.TrainingMode.PRESERVE  # what the network is in: evaluation, and nothing folded for it
        axes = {name: {axis: AXES[axis] for axis in source.opened} for name in names}
        torch.onnx.export(
            network, drawn, path, input_names=names, dynamic_axes=axes, dynamo=False, opset_version=17, training=kept
        )
        return
    opened = dict.fromkeys(source.opened, torch.export.Dim.DYNAMIC)
    torch.onnx.export(
        network,
        drawn,
        path,
        input_names=names,
        dynamic_shapes=(opened,) * len(drawn),
        external_data=source.outside,
        dynamo=True,
        verbose=False,
    )


def _example(dtype: str, shape: tuple[int, ...]) -> torch.Tensor:
    kind = getattr(torch, dtype)
    return torch.zeros(shape, dtype=kind) if dtype.startswith("int") else torch.randn(shape, dtype=kind)


def randomised(network: nn.Module, seed: int) -> nn.Module:
    """In evaluation mode, with weights that keep a signal's size, and statistics and scales that do something."""
    generator = torch.Generator().manual_seed(seed)

    def uniform(t: Tensor) -> None:
        t.uniform_(0.5, 1.5, generator=generator)

    def normal(t: Tensor, deviation: float = 0.1) -> None:
        t.normal_(0.0, deviation, generator=generator)

    with torch.no_grad():
        for part in network.modules():
            if isinstance(part, nn.Conv2d | nn.ConvTranspose2d):
                normal(part.weight, math.sqrt(2 / (part.weight[0].numel())))
            if isinstance(part, nn.BatchNorm2d):
                normal(part.running_mean)
                uniform(part.running_var)
            if isinstance(part, nn.BatchNorm2d | nn.LayerNorm):
                uniform(part.weight)
                normal(part.bias)
            if isinstance(part, Scale):
                uniform(part.scale)
            if isinstance(part, nn.LSTM):
                for weights in part.parameters():
                    normal(weights)
    return network.eval()
