"""Models that were made a program before start from the cache: as fast and as right as if they were made anew."""

from __future__ import annotations

import random
import threading
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import opgen
from opgen.cache import entries as cache
from opgen.diagnostics.calls import ArgumentValueError
from opgen.files import FileRefusedError
from opgen.graph.compiled.staged import AGAIN, StagedModel
from opgen.graph.ir.values import Array
from opgen.runtime.kernels.loaded import Loaded
from tests.onnx.models import float_input, model, node
from tests.support.kernels import output_of
from tests.support.known_weights import drawn, layers


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for models, and an empty cache."""
    monkeypatch.setenv("OPGEN_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "models").mkdir()
    return tmp_path / "models"


def anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in another process: no kernel is loaded."""
    monkeypatch.setattr("opgen.runtime.kernels.loaded._loaded", Loaded())


def unread(monkeypatch: pytest.MonkeyPatch) -> None:
    """No model may be read from now on."""

    def read(*_: object) -> None:
        raise AssertionError("the model is read")

    monkeypatch.setattr("opgen.onnx.load.load_opened", read)


def result(model: StagedModel, *given: Array) -> Array:
    found = model(*given)
    assert isinstance(found, np.ndarray)
    return found


def test_a_model_that_was_run_before_is_not_read_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, x = layers(folder / "m.onnx"), drawn(3, 64)
    expected = result(opgen.compile(path), x)
    np.testing.assert_allclose(
        expected, np.maximum(x @ drawn(64, 128, seed=1), 0) @ drawn(128, 64, seed=2), rtol=1e-4, atol=1e-3
    )
    anew(monkeypatch)
    unread(monkeypatch)
    for source in (path, path.read_bytes(), str(path)):
        again = opgen.compile(source)
        assert again.input_names == ("x",)
        assert result(again, x).tobytes() == expected.tobytes()
        assert result(again, 2 * x).tobytes() != expected.tobytes()
        assert again.run({"x": x})["y"].tobytes() == expected.tobytes()
        with pytest.raises(AssertionError, match="is read"):
            again(drawn(4, 64))


def test_what_a_recalled_model_was_made_of_is_told(folder: Path) -> None:
    path, x = layers(folder / "m.onnx"), drawn(3, 64)
    first, second = opgen.compile(path), opgen.compile(path)
    first(x), second(x)
    assert first.programs[0].program == second.programs[0].program
    assert second.explain() == AGAIN + first.explain()


def test_nothing_is_imported_that_only_making_a_program_takes(folder: Path) -> None:
    path = layers(folder / "m.onnx")
    program = f"""
        import sys
        import numpy as np
        import opgen
        model = opgen.compile({str(path)!r})
        print(float(model(np.ones((2, 64), np.float32)).sum()))
        heavy = ("lark", "jinja2", "onnx", "google.protobuf", "click", "rich")
        parts = ("lower.lowering", "schedule", "passes", "spec.syntax.nodes", "graph.build.resolve", "grad")
        print([name for name in (*heavy, *(f"opgen.{{part}}" for part in parts)) if name in sys.modules])
    """
    first, again = output_of(program).splitlines(), output_of(program).splitlines()
    assert again == [first[0], "[]"]
    assert "opgen.schedule" in first[1]


@pytest.mark.parametrize("how", ["cut", "flipped", "emptied", "swapped", "gone"])
def test_damage_in_the_cache_costs_time_only(folder: Path, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path, x = layers(folder / "m.onnx"), drawn(3, 64)
    expected = result(opgen.compile(path), x).tobytes()
    files = sorted(p for p in (folder.parent / "cache").iterdir() if p.suffix in (".kernel", ".array"))
    assert sum(p.suffix == ".array" for p in files) == 2
    seed = random.randrange(1 << 30)
    print("seed", seed)
    generator = random.Random(seed)
    for number, file in enumerate(files):
        content = file.read_bytes()
        if how == "cut":
            file.write_bytes(content[: generator.randrange(len(content))])
        elif how == "flipped":
            at = generator.choice([generator.randrange(len(content)), len(content) - 1])
            file.write_bytes(content[:at] + bytes([content[at] ^ (1 << generator.randrange(8))]) + content[at + 1 :])
        elif how == "emptied":
            file.write_bytes(b"")
        elif how == "swapped":
            file.write_bytes(files[number - 1].read_bytes())
        else:
            file.unlink()
        anew(monkeypatch)
        assert result(opgen.compile(path), x).tobytes() == expected, file
        if how == "flipped" and file.suffix == ".array":
            assert file.read_bytes()[4096:] == content[4096:], "it was not made again"


def test_each_content_is_a_model_of_its_own(folder: Path) -> None:
    path, x = folder / "m.onnx", drawn(3, 64)
    found = {result(opgen.compile(layers(path, seed)), x).tobytes() for seed in (1, 5, 1, 9)}
    assert len(found) == 3


def test_a_file_that_is_removed_or_replaced_stays_the_model_that_was_compiled(folder: Path) -> None:
    path, x, other = layers(folder / "m.onnx"), drawn(3, 64), drawn(5, 64)
    first = opgen.compile(path)
    expected = result(first, x).tobytes(), result(first, other).tobytes()
    with opgen.algorithms("off"):
        recalled = opgen.compile(path)
        layers(folder / "next", 7).rename(path)
        assert result(recalled, x).tobytes() == expected[0]
        path.unlink()
        assert result(recalled, other).tobytes() == expected[1]


def test_a_file_that_is_written_to_meanwhile_is_refused(folder: Path) -> None:
    path, x = layers(folder / "m.onnx"), drawn(3, 64)
    opgen.compile(path)(x)
    recalled = opgen.compile(path)
    path.write_bytes(layers(folder / "other", 7).read_bytes())
    with pytest.raises(FileRefusedError, match="it has changed since it was opened"):
        recalled(drawn(5, 64))


def beside(folder: Path, factor: float) -> Path:
    """A model whose weights lie in a file beside it."""
    (folder / "data").write_bytes((factor * np.ones(64, np.float32)).tobytes())
    weights = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[64], data_location=TensorProto.EXTERNAL)
    weights.external_data.add(key="location", value="data")
    path = folder / "beside.onnx"
    path.write_bytes(
        model([node("Mul", ["x", "w"], ["y"])], [float_input("x", (64,))], initialisers=[weights]).SerializeToString()
    )
    return path


def test_data_in_other_files_count(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x = drawn(64)
    for factor in (2.0, 3.0):
        assert result(opgen.compile(beside(folder, factor)), x).tolist() == (np.float32(factor) * x).tolist()
    unread(monkeypatch)
    recalled = opgen.compile(folder / "beside.onnx")
    assert result(recalled, x).tolist() == (np.float32(3) * x).tolist()
    (folder / "data").unlink()
    with pytest.raises(AssertionError, match="is read"):
        opgen.compile(folder / "beside.onnx")


@pytest.mark.parametrize("known", [False, True])
def test_data_in_other_files_that_are_written_to_meanwhile_are_refused(folder: Path, known: bool) -> None:
    path, data = layers(folder / "m.onnx"), folder / "data"
    onnx.save(onnx.load(path), path, save_as_external_data=True, location=data.name, size_threshold=0)
    first, second = drawn(3, 64), drawn(7, 64)
    original = data.read_bytes()
    if known:
        opgen.compile(path)(first)
    changing = opgen.compile(path)
    changing(first)
    data.write_bytes(np.zeros(len(original), np.uint8).tobytes())
    with pytest.raises(FileRefusedError, match=r"data: it has changed since it was opened$"):
        changing(second)
    data.write_bytes(original[:64])  # what is mapped must not be read any more
    with pytest.raises(FileRefusedError, match=r"data: it has changed since it was opened$"):
        changing(second)
    data.write_bytes(original)
    again = opgen.compile(path)  # nothing was kept of the data that were there meanwhile
    again(first)
    expected = np.maximum(second @ drawn(64, 128, seed=1), 0) @ drawn(128, 64, seed=2)
    np.testing.assert_allclose(result(again, second), expected, rtol=1e-4, atol=1e-3)


def test_elements_that_decide_about_shapes_are_a_part_of_the_key(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shape = helper.make_tensor_value_info("shape", TensorProto.INT64, [2])
    whole = model([node("Reshape", ["x", "shape"], ["y"])], [float_input("x", (6,)), shape])
    x, shapes = drawn(6), [np.int64([2, 3]), np.int64([3, 2]), np.int64([6, -1])]
    for given in shapes:
        assert result(opgen.compile(whole.SerializeToString()), x, given).tolist() == x.reshape(given).tolist()
    unread(monkeypatch)
    recalled = opgen.compile(whole.SerializeToString())
    for given in (*shapes, *shapes):
        assert result(recalled, x, given).tolist() == x.reshape(given).tolist()


def test_elements_that_are_refused_are_told_by_node(folder: Path) -> None:
    indices = helper.make_tensor_value_info("i", TensorProto.INT64, [2])
    whole = model([node("Gather", ["x", "i"], ["y"], name="picks")], [float_input("x", (6,)), indices])
    path = folder / "m.onnx"
    path.write_bytes(whole.SerializeToString())
    x = drawn(6)
    said = []
    for _ in range(2):
        found = opgen.compile(path)
        assert result(found, x, np.int64([1, -1])).tolist() == x[[1, -1]].tolist()
        with pytest.raises(ArgumentValueError, match="picks") as refused:
            found(x, np.int64([1, 6]))
        said.append(str(refused.value))
    assert said[0] == said[1]


def test_a_cache_that_is_too_small_keeps_no_arrays(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache.default(), "limit", 80_000)
    path, x = layers(folder / "m.onnx"), drawn(3, 64)
    found = {result(opgen.compile(path), x).tobytes() for _ in range(2)}
    assert len(found) == 1
    assert not list((folder.parent / "cache").glob("*.array"))


def test_many_at_once(folder: Path) -> None:
    """Threads that all find an empty cache, and write to it."""
    path, x = layers(folder / "m.onnx"), drawn(3, 64)
    found: list[bytes] = []
    threads = [threading.Thread(target=lambda: found.append(result(opgen.compile(path), x).tobytes())) for _ in "four"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert len(set(found)) == 1
    assert result(opgen.compile(path), x).tobytes() in found


def test_programs_that_read_the_same_weights_share_their_memory(folder: Path) -> None:
    path = layers(folder / "m.onnx")
    for recalled in (False, True):
        found = opgen.compile(path)
        for rows in (3, 4):
            found(drawn(rows, 64))
        held = [[row[0] for row in p.rows if row is not None] for p in found.programs]
        if recalled:
            assert {id(h) for h in held[0]} == {id(h) for h in held[1]}
