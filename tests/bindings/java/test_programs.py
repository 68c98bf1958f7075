"""Java programs against the jar, on every kit, with the JVM's checks of native code on."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from tests.bindings.java.library import JDK, KITS, WHY_NOT, Jdk, built, compile_java, run_java
from tests.bindings.modules import OPS, generated
from tools import bench_java

PROGRAMS = Path(__file__).parent / "programs"
ALL = [kit for kit in (JDK, *KITS) if kit is not None]
pytestmark = pytest.mark.skipif(JDK is None, reason=WHY_NOT)


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All programs, compiled once; those of TensorFlow's with only the imports changed."""
    folder = tmp_path_factory.mktemp("programs")
    sources = []
    for path in sorted(PROGRAMS.glob("*.java")):
        root = "nn_ops.legacy" if path.name.startswith("Legacy") else "nn_ops"
        text = re.sub(r"^import org\.tensorflow\.", f"import {root}.", path.read_text(), flags=re.MULTILINE)
        assert "tensorflow." not in text, path
        sources.append(folder / path.name)
        sources[-1].write_text(text)
    return compile_java(sources, folder / "classes", OPS)


@pytest.mark.parametrize("jdk", ALL, ids=lambda kit: kit.home.name)
@pytest.mark.parametrize("name", ["Graphs", "Nulls", "Values"])
def test_program(name: str, jdk: Jdk, classes: Path) -> None:
    assert run_java(classes, OPS, name, jdk=jdk) == ""


@pytest.mark.parametrize("jdk", ALL, ids=lambda kit: kit.home.name)
def test_many_threads(jdk: Jdk, classes: Path) -> None:
    assert run_java(classes, OPS, "Threads", jdk=jdk) in ("plain\n", "virtual\n")


def test_memory_does_not_grow(classes: Path) -> None:
    """A million calls of all kinds, most of whose results are left to the collector."""
    grown = int(run_java(classes, OPS, "Endless", "1000000", options=("-Xmx48m",), checks=False))
    assert grown < 100_000, f"{grown} kB"


def test_the_price_of_a_tiny_call() -> None:
    """The tool that tells it; the bound is wide, because other programs share the caches of a machine of tests."""
    result = CliRunner().invoke(bench_java.main, [str(built(OPS))])
    assert result.exit_code == 0, result.output
    prices = {line.split(" ns  ")[1]: int(line.split(" ns  ")[0]) for line in result.output.splitlines()}
    assert len(prices) == 5
    assert all(0 < price < 12_000 for price in prices.values()), prices


def test_the_price_needs_a_build(tmp_path: Path) -> None:
    result = CliRunner().invoke(bench_java.main, [str(tmp_path)])
    assert (result.exit_code, result.output.count("given no lib/nn_ops.jar")) == (1, 1)


def _network() -> dict[str, list[float]]:
    """The numbers that the small network prints, by Python's functions."""
    ops = generated(OPS)
    b, y, x, c = np.indices((2, 6, 6, 3))
    image = ((b + 2 * y + 3 * x + 5 * c) % 7 - 3).astype(np.float32)
    w1 = (0.25 * ((np.arange(108) * 5) % 11 - 5)).astype(np.float32).reshape(3, 3, 3, 4)
    w2 = (0.5 * ((np.arange(36) * 5) % 11 - 5)).astype(np.float32).reshape(3, 3, 4, 1)
    two, one, pads = [1, 2, 2, 1], [1, 1, 1, 1], [0, 0, 1, 1, 1, 1, 0, 0]
    said: dict[str, list[float]] = {"loss": [], "by image": []}
    for _ in range(3):
        hidden = ops.conv2d(image, w1, two, "SAME")
        output = ops.depthwise_conv2d_native(hidden, w2, one, "EXPLICIT", explicit_paddings=pads)
        by_w2 = ops.depthwise_conv2d_native_backprop_filter(
            hidden, w2.shape, output, one, "EXPLICIT", explicit_paddings=pads
        )
        by_hidden = ops.depthwise_conv2d_native_backprop_input(hidden.shape, w2, output, one, "SAME")
        by_w1 = ops.conv2d_backprop_filter(image, w1.shape, by_hidden, two, "SAME")
        by_image = ops.conv2d_backprop_input(image.shape, w1, by_hidden, two, "SAME")
        said["loss"].append(float((output.astype(np.float64) ** 2).sum() / 2))
        said["by image"].append(float(by_image[1, 2, 3, 1]))
        w1, w2 = w1 - by_w1 * np.float32(2**-16), w2 - by_w2 * np.float32(2**-16)
    said["hidden"] = [float(ops.conv2d(image, w1, two, "SAME")[1, 2, 0, 3])]
    return said


def test_a_network_as_for_tensorflow(classes: Path) -> None:
    """Forward, gradients, descent: the imports are all that differs from a source for TensorFlow."""
    said = run_java(classes, OPS, "Network").splitlines()
    assert said[:2] == ["layer/Conv2d layer/DepthwiseConv2dNative by_image", "null TFloat32 [-1, 6, 6, 3]"]
    for name, expected in _network().items():
        found = [float(line.removeprefix(f"{name} ").split()[0]) for line in said if line.startswith(f"{name} ")]
        np.testing.assert_allclose(found, expected, rtol=1e-4)
    assert said[-1].endswith("[2, 3, 3, 4] DT_FLOAT")


def test_constants_as_for_tensorflow(classes: Path) -> None:
    """Tensors and constants in all the ways of a source for TensorFlow, of which the imports alone were changed."""
    assert run_java(classes, OPS, "Constants").splitlines() == [
        "DT_INT32 0 1 42",
        "42",
        "6 true true",
        "8",
        "1.0 2.0 0.0 7.0",
        "Tensor: argument 'rawData': expected 12 bytes for shape [3], given 8",
        "Tensor: argument 'size': expected at least 12 bytes for shape [3], given 11",
        "[2, 3]",
        "3.0 2",
        "DT_HALF [] DT_BFLOAT16 [] DT_INT64 []",
        "2.5 DT_UINT8 []",
        "2 TUint8",
        "[1, 2] [3] [2, 1, 1, 1, 1, 3]",
        "2.0",
        "true true",
    ]


def test_a_program_as_for_tensorflow_1(classes: Path) -> None:
    """The calls of the older page."""
    ops = generated(OPS)
    image = np.arange(16, dtype=np.float32).reshape(1, 4, 4, 1)
    weights = np.arange(1, 19, dtype=np.float32).reshape(3, 3, 1, 2)
    y = ops.conv2d(image, weights, [1, 2, 2, 1], "SAME")
    by_image = ops.conv2d_backprop_input_v2(image, weights, y, [1, 2, 2, 1], "SAME")
    by_weights = ops.conv2d_backprop_filter_v2(image, weights, y, [1, 2, 2, 1], "SAME")
    assert run_java(classes, OPS, "LegacyNetwork").splitlines() == [
        "layer/Conv2D <unknown> FLOAT <unknown>",
        f"{y.tolist()} true",
        str(by_image.ravel().tolist()),
        "FLOAT tensor with shape [3, 3, 1, 2] 72",
        str(by_weights.tolist()),
        "42 DOUBLE true",
    ]
