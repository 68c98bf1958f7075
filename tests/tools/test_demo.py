"""The demonstration, on a photograph a tenth as wide; and that it does not hide a wrong result."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from tests.support.repository import ROOT
from tools.demo import __main__ as demo
from tools.demo.agreement import relative_error
from tools.demo.effects import effects
from tools.reference import Sums

pytest.importorskip("matplotlib")


@pytest.fixture(autouse=True)
def shared_kernels(fresh_module: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels are shared, not one for each case."""
    monkeypatch.setenv("OPGEN_SPECIALIZE", "never")


def test_it_draws_a_picture_and_everything_agrees(generated: Path, tmp_path: Path) -> None:
    picture, row = tmp_path / "sheet.png", tmp_path / "row.jpg"
    result = CliRunner().invoke(
        demo.main, ["--module", str(generated), "--scale", "10", "-o", str(picture), "--row", str(row)]
    )
    assert result.exit_code == 0, result.output
    assert row.read_bytes()[:2] == b"\xff\xd8"
    assert (ROOT / "tools" / "demo" / "picture.jpg").stat().st_size < 200_000
    assert picture.read_bytes()[:4] == b"\x89PNG"
    from PIL import Image

    with Image.open(picture) as image:
        assert image.width > 800
        assert image.height > 800
        assert len(image.convert("RGB").getcolors(1 << 24) or []) > 100
    for word in ("conv2d", "depthwise_conv2d_native", "depthwise_conv2d", "photograph", "TensorFlow cases", "bfloat16"):
        assert word in result.output


def test_a_wrong_result_is_said_and_fails(generated: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = demo.load

    def load(module: Path) -> dict[str, demo.Op]:
        ops = right(module)
        function = ops["depthwise_conv2d_native"]

        def wrong(*arguments: object, **named: object) -> np.ndarray:
            return function(*arguments, **named) * np.float32(1.01)

        wrong.__name__ = "depthwise_conv2d_native"
        return {**ops, "depthwise_conv2d_native": wrong}

    monkeypatch.setattr(demo, "load", load)
    result = CliRunner().invoke(
        demo.main, ["--module", str(generated), "--scale", "20", "-o", str(tmp_path / "sheet.png")]
    )
    assert result.exit_code == 1
    assert "some results are wrong" in result.output


def test_the_effects_use_both_ops_both_formats_strides_dilations_and_groups() -> None:
    chosen = effects()
    assert {e.op for e in chosen} == {"dense", "channelwise"}
    assert {e.data_format for e in chosen} == {"NHWC", "NCHW"}
    assert {e.padding for e in chosen} == {"SAME", "VALID"}
    assert any(e.stride > 1 and e.dilation > 1 for e in chosen)
    assert any(e.op == "dense" and e.weights.shape[2] == 1 for e in chosen)


@pytest.mark.parametrize(("dtype", "bits"), [("float16", 11), ("bfloat16", 8), ("float32", 24), ("float64", 53)])
def test_one_roundoff_of_the_result_is_the_limit(dtype: str, bits: int) -> None:
    expected = Sums(np.array([1.0, -2.0]), np.zeros(2))
    result = expected.values * (1 + 2 * 2.0**-bits)
    assert relative_error(result, expected, dtype) == pytest.approx(2)
    assert relative_error(np.zeros(3), expected, dtype) == float("inf")


def test_denormals_are_half_of_their_distance_off() -> None:
    """The exact value lies between two numbers of float16 that are 2**-24 apart: either is right."""
    expected = Sums(np.array([267.5 * 2.0**-24]), np.zeros(1))
    for steps, limit in ((267, 1.0), (268, 1.0), (269, 3.0)):
        assert relative_error(np.array([steps * 2.0**-24]), expected, "float16") == pytest.approx(limit)
