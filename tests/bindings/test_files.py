"""Generated files: written whole, only if they change, and never over others'; removed only if they are ours."""

from __future__ import annotations

import fcntl
import os
import random
import shutil
import threading
from pathlib import Path

import pytest

from opgen.bindings.files import Changes, apply_changes, changes
from opgen.bindings.manifest import MARK, Manifest, source_of
from opgen.diagnostics import UserError

HEAD = f"# {MARK}x.op. Do not edit.\n"


def _tree(folder: Path) -> dict[str, str]:
    return {p.relative_to(folder).as_posix(): p.read_text() for p in sorted(folder.rglob("*")) if p.is_file()}


def _manifest(files: dict[str, str]) -> Manifest:
    return Manifest.of("x", "x.op", files)


def _changes(folder: Path, files: dict[str, str]) -> Changes:
    return changes(folder, files, [_manifest(files)])


def _update(folder: Path, files: dict[str, str]) -> Changes:
    return apply_changes(folder, files, [_manifest(files)])


def test_only_what_differs_is_written(tmp_path: Path) -> None:
    files = {"x.py": HEAD + "1", "listings/b.md": HEAD + "2", "py.typed": ""}
    assert _update(tmp_path, files) == Changes(("listings/b.md", "py.typed", "x.manifest", "x.py"), ())
    assert _tree(tmp_path) == {**files, "x.manifest": str(_manifest(files))}
    before = (tmp_path / "x.py").stat().st_mtime_ns
    assert _update(tmp_path, files) == Changes((), ())
    changed = files | {"listings/b.md": HEAD + "3"}
    assert _update(tmp_path, changed) == Changes(("listings/b.md",), ())
    assert (tmp_path / "x.py").stat().st_mtime_ns == before


def test_nothing_is_written_while_another_process_writes(tmp_path: Path) -> None:
    """The lock is the one that `opgen build` takes on its folder; what is there is looked at again under it."""
    other = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(other, fcntl.LOCK_EX)
    found: list[Changes] = []
    thread = threading.Thread(target=lambda: found.append(_update(tmp_path, {"x.py": HEAD, "py.typed": ""})))
    thread.start()
    thread.join(0.3)
    assert thread.is_alive()
    assert not (tmp_path / "x.py").exists()
    (tmp_path / "py.typed").write_text("")
    os.close(other)
    thread.join(30)
    assert found == [Changes(("x.manifest", "x.py"), ())]
    assert (tmp_path / "x.py").read_text() == HEAD


def test_what_the_manifest_lists_goes_when_it_is_stale(tmp_path: Path) -> None:
    _update(tmp_path, {"x.py": HEAD, "listings/b.ll": f"; {MARK}x.op. B: LLVM IR.\n"})
    (tmp_path / "mine.py").write_text("x = 1\n")
    (tmp_path / "listings" / "mine.ll").write_text("; no\n")
    assert _update(tmp_path, {"x.py": HEAD}) == Changes(("x.manifest",), ("listings/b.ll",))
    assert set(_tree(tmp_path)) == {"x.py", "x.manifest", "mine.py", "listings/mine.ll"}


def test_nothing_else_goes_whatever_it_says(tmp_path: Path) -> None:
    """Files that bear the mark, in the folder and below it, but in no manifest; those of other modules, too."""
    (tmp_path / "sources").mkdir()
    (tmp_path / "listings").mkdir()
    ours = {
        "sources/text.py": HEAD,
        "note.md": f"A note on `{MARK}x.op.`\n",
        "old.md": HEAD,
        "listings/old.ll": HEAD,
        "y.py": f"# {MARK}y.op. Do not edit.\n",
        "y.manifest": str(Manifest.of("y", "y.op", ["y.py", "gone.py"])),
    }
    for name, text in ours.items():
        (tmp_path / name).write_text(text)
    found = _update(tmp_path, {"x.py": HEAD})
    assert (found.written, found.removed) == (("x.manifest", "x.py"), ())
    assert found.notes == (
        f"{tmp_path}/old.md looks stale, and is in no manifest; it is left alone",
        f"{tmp_path}/listings/old.ll looks stale, and is in no manifest; it is left alone",
        f"{tmp_path}/y.manifest is of y.op, which was not given; what it lists is left alone",
    )
    assert ours.items() <= _tree(tmp_path).items()


def test_a_listed_file_that_became_something_else_stays(tmp_path: Path) -> None:
    outside = tmp_path / "outside.py"
    outside.write_text(HEAD)
    folder = tmp_path / "out"
    _update(folder, {"x.py": HEAD, "x.a": HEAD, "x.b": HEAD, "x.c": HEAD, "listings/d.ll": HEAD})
    (folder / "x.a").write_text("mine now\n")
    (folder / "x.b").unlink()
    (folder / "x.b").symlink_to(outside)
    (folder / "x.c").unlink()
    os.mkfifo(folder / "x.c")
    shutil.rmtree(folder / "listings")
    (tmp_path / "d.ll").write_text(HEAD)
    (folder / "listings").symlink_to(tmp_path)
    found = _update(folder, {"x.py": HEAD})
    assert found.removed == ()
    assert [n.split(" was")[0] for n in found.notes] == [
        f"{folder}/{n}" for n in ("listings/d.ll", "x.a", "x.b", "x.c")
    ]
    assert all(os.path.lexists(folder / n) for n in ("listings/d.ll", "x.a", "x.b", "x.c"))
    assert outside.read_text() == HEAD


LINES = (
    *(
        "../outside.py",
        "/etc/passwd",
        "listings/../../outside.py",
        "listings/a/b",
        "other.py",
        "README.md",
        "x/../x.py",
    ),
    *("", "listings/", "listings/.hidden", "x.py\\", "x.py/", ".", "..", "x.\u202epy", "x.py\t", "*", "listings/*"),
    *("# listings/b.ll", "x.py", "listings/b.ll", "\x00", "\r", "x." + "y" * 300, "ſ.py", "x.tar.gz"),
)


def test_a_hostile_manifest_removes_nothing_else(tmp_path: Path) -> None:
    """Random lines and bytes: whatever is removed was made by generation; no path is reached outside."""
    seed = random.randrange(1 << 32)
    print("seed", seed)
    choose = random.Random(seed)
    for number in range(300):
        folder = tmp_path / str(number)
        files = {"x.py": HEAD, "listings/b.ll": HEAD}
        _update(folder, files)
        for name in ("other.py", "README.md"):
            (folder / name).write_text(HEAD)
        (tmp_path / "outside.py").write_text(HEAD)
        text = str(_manifest(files)).encode() + "\n".join(choose.choices(LINES, k=choose.randrange(5))).encode()
        data = bytearray(text)
        for _ in range(choose.choice((0, 0, 1, 20))):
            data[choose.randrange(len(data))] = choose.randrange(256)
        (folder / "x.manifest").write_bytes(data)
        if source_of(bytes(data)) is None:
            with pytest.raises(UserError, match=r"x\.manifest is in the way"):
                _update(folder, {"x.py": HEAD})
        else:
            assert set(_update(folder, {"x.py": HEAD}).removed) <= {"listings/b.ll"}, data
        assert (folder / "other.py").exists()
        assert (folder / "README.md").exists()
        assert (tmp_path / "outside.py").exists()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f"# {MARK}y.op. Of another.\nx.py\n", "its first line does not name x.op"),
        (HEAD + "x.py\n../a.py\n", "line 3 is not the name of a generated file"),
        (HEAD + "x.py\n" * 300_000, "it is larger than 1 MiB"),
    ],
)
def test_why_a_manifest_is_not_believed(text: str, reason: str, tmp_path: Path) -> None:
    assert Manifest.parse("x", "x.op", text.encode()) == reason
    _update(tmp_path, {"x.py": HEAD, "x.old": HEAD})
    (tmp_path / "x.manifest").write_text(text)
    found = _update(tmp_path, {"x.py": HEAD})
    assert found.removed == ()
    assert found.notes[0] == f"{tmp_path}/x.manifest: {reason}; nothing that it lists is removed"
    assert (tmp_path / "x.old").exists()


def test_a_manifest_is_read_as_it_is_written() -> None:
    files = {"x.py", "py.typed", "listings/b.scheduled.loop"}
    written = _manifest(dict.fromkeys(files, ""))
    assert Manifest.parse("x", "x.op", str(written).encode()) == written
    assert Manifest.parse("x", "x.op", str(written).replace("\n", "\r\n").encode()) == written
    assert source_of(str(written).encode()) == "x.op"


@pytest.mark.parametrize("text", ["x = 1\n", f'"""It says {MARK}x.op. at the head."""\n', f"\n{HEAD}"])
def test_somebody_elses_file_is_left_alone(text: str, tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text(text)
    with pytest.raises(UserError) as caught:
        _changes(tmp_path, {"x.py": HEAD})
    assert str(caught.value) == (
        f"{tmp_path / 'x.py'} is in the way: it was not generated by opgen, and is left alone (--overwrite replaces it)"
    )
    assert (tmp_path / "x.py").read_text() == text
    assert changes(tmp_path, {"x.py": HEAD}, [], overwrite=True).written == ("x.py",)


def test_links_and_folders_in_the_way_are_left_alone(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "x.py").write_text(HEAD)
    for name, target, reason in (
        ("x.py", outside / "x.py", "it is a link"),
        ("listings", outside, "it is no folder of its own"),
    ):
        folder = tmp_path / f"of {name}"
        folder.mkdir()
        (folder / name).symlink_to(target)
        with pytest.raises(UserError) as caught:
            _changes(folder, {"x.py": HEAD + "new", "listings/b.ll": HEAD})
        assert str(caught.value) == f"{folder / name} is in the way: {reason}"
    (tmp_path / "x.py").mkdir()
    with pytest.raises(UserError, match=r"x\.py is in the way: it is a folder"):
        _changes(tmp_path, {"x.py": HEAD})


def test_nothing_is_half_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All texts are on disk before the first file is replaced; a failure leaves no rubbish, and removes nothing."""
    _update(tmp_path, {"x.py": HEAD + "old", "x.md": HEAD + "old", "x.old": HEAD})
    before = _tree(tmp_path)
    replaced: list[str] = []

    def fail(source: object, target: object) -> None:
        replaced.append(str(target))
        raise OSError("no space")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="no space"):
        _update(tmp_path, {"x.py": HEAD + "new", "x.md": HEAD + "new"})
    assert len(replaced) == 1
    assert _tree(tmp_path) == before


def test_the_manifest_comes_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that ends between two files leaves the old list, by which the next one removes what is stale."""
    _update(tmp_path, {"x.py": HEAD, "x.old": HEAD})
    replace, replaced = os.replace, list[str]()

    def fail(source: str, target: Path) -> None:
        replaced.append(target.name)
        if len(replaced) == 2:
            raise KeyboardInterrupt
        replace(source, target)

    wanted = {"x.py": HEAD + "new", "x.md": HEAD, "listings/z.ll": HEAD}
    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(KeyboardInterrupt):
        _update(tmp_path, wanted)
    monkeypatch.undo()
    assert "x.manifest" not in replaced
    assert _update(tmp_path, wanted).removed == ("x.old",)
    assert set(_tree(tmp_path)) == {*wanted, "x.manifest"}


def test_an_unwritable_text_leaves_all_as_it_was(tmp_path: Path) -> None:
    _update(tmp_path, {"x.py": HEAD})
    before = _tree(tmp_path)
    with pytest.raises(UnicodeEncodeError):
        _update(tmp_path, {"x.py": HEAD + "new", "x.b": "\ud800"})
    assert _tree(tmp_path) == before
