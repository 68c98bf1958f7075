"""Reading text: what the model is given, and what its scores mean."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from onnx import helper

from tools import read_text


def test_a_picture_becomes_rows_of_the_model_s_height() -> None:
    image = np.zeros((24, 60, 3), np.uint8)
    image[:, 30:] = (255, 0, 255)
    x = read_text.prepared(image)
    assert (x.dtype, x.shape) == (np.float32, (1, 3, 48, 120))
    assert (x[0, :, :, :60] == -1).all()
    assert (x[0, [0, 2], :, 60:] == 1).all()
    assert (x[0, 1, :, 60:] == -1).all()


def test_drawn_and_read_pictures_are_alike(tmp_path: Path) -> None:
    image_files = pytest.importorskip("matplotlib.image")
    image = read_text.drawn("some text")
    assert image.dtype == np.uint8
    assert image.min() < 50
    assert image[0].min() == 255
    image_files.imsave(tmp_path / "line.png", image)
    np.testing.assert_array_equal(read_text.read(tmp_path / "line.png"), image)


def test_scores_are_characters_that_repeat_once() -> None:
    model = helper.make_model(helper.make_graph([], "g", [], []))
    helper.set_model_props(model, {"character": "a\nb\n"})
    characters = read_text.alphabet(model.SerializeToString())
    assert characters == ["", "a", "b", "", " "]
    best = [1, 1, 0, 1, 4, 2, 2, 0]
    assert read_text.decoded(np.eye(5)[best][None], characters) == "aa b"


def test_without_the_wheel_another_model_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(folder: Path) -> bytes:
        raise subprocess.CalledProcessError(1, "pip")

    ran: list[bool] = []
    monkeypatch.setattr(read_text, "recogniser", refused)
    monkeypatch.setattr(read_text, "topology", lambda: ran.append(True))
    result = CliRunner().invoke(read_text.main, ["--folder", str(tmp_path)])
    assert result.exit_code == 0
    assert "PP-OCR is not to be had" in result.output
    assert ran == [True]
