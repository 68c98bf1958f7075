"""No spec of less than 100 kB takes more than 5 seconds and 512 MiB, or ends in anything but results or diagnostics."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from opgen.diagnostics import DiagnosticError
from opgen.spec import load
from opgen.spec.syntax.limits import FILE_BYTES, FILES, IMPORT_DEPTH
from tests.spec import bombs
from tests.spec.confined import COMMANDS, MEGABYTES

ROOT = Path(__file__).parents[2]
ALL = os.environ.get("OPGEN_BOMBS") == "all"
"""Whether to run every command on every bomb: some minutes."""
SEED = 3
"""Chooses the bombs, unless OPGEN_SEED does."""


def _wrong(commands: list[str], names: list[str], seeds: list[int]) -> list[str]:
    """What ended otherwise than it may."""
    parts = [";".join(commands), ";".join(names), ";".join(map(str, seeds))]
    done = subprocess.run(
        [sys.executable, "-m", "tests.spec.confined", *parts], cwd=ROOT, capture_output=True, text=True, check=True
    )
    ended = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(ended) == len(commands) * (len(names) + len(seeds)), done.stderr
    return [
        f"{e['command']} {e['bomb']}: {e['status']}, {e['seconds']:.1f} s, {e['megabytes']:.0f} MB: {e['output']}"
        for e in ended
        if e["status"] not in (0, 1) or e["megabytes"] > MEGABYTES
    ]


def test_bombs_are_small() -> None:
    sizes = {name: len(text.encode()) for name, text in bombs.texts(bombs.BOMBS, range(50)).items()}
    assert {name: size for name, size in sizes.items() if size > bombs.MOST} == {}


@pytest.mark.parametrize("command", COMMANDS)
def test_no_bomb_goes_off(command: str) -> None:
    """A few of all, others for each OPGEN_SEED, and random ones; requirements without end once took half a minute."""
    seed = int(os.environ.get("OPGEN_SEED", SEED))
    print(f"OPGEN_SEED={seed}")
    rng = random.Random(seed)
    few = 24 if command == "check" else 6
    names = sorted(bombs.BOMBS) if ALL else rng.sample(sorted(bombs.BOMBS), few)
    assert _wrong([command], names, [385484, *(rng.randrange(10**6) for _ in range(40 if ALL else 4))]) == []


# What a spec makes opgen open ---------------------------------------------------------------------


def _mistake(path: Path) -> str:
    with pytest.raises(DiagnosticError) as caught:
        load(path)
    return str(caught.value)


def test_an_import_opens_plain_files_only(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.op")
    (tmp_path / "zero.op").symlink_to("/dev/zero")
    (tmp_path / "folder.op").mkdir()
    (tmp_path / "large.op").write_bytes(b"#" * (FILE_BYTES + 1))
    (tmp_path / "secret.txt").write_text("password\n")
    (tmp_path / "link.op").symlink_to(tmp_path / "secret.txt")
    names = ["pipe.op", "zero.op", "folder.op", "large.op", "secret.txt", "link.op"]
    (tmp_path / "a.op").write_text("".join(f'import "{name}"\n' for name in names))
    told = _mistake(tmp_path / "a.op")
    assert told.count("error[S002]") == len(names)
    assert "cannot read 'pipe.op': it is a pipe" in told
    assert "cannot import 'zero.op': it is no spec" in told
    assert "cannot read 'folder.op': it is a folder" in told
    assert "cannot read 'large.op': it is larger than 1 MiB" in told
    assert "cannot import 'link.op': it is no spec" in told
    assert "password" not in told


def test_what_is_checked_is_a_plain_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.op")
    assert "it is a pipe" in _mistake(tmp_path / "pipe.op")
    assert "it is a device" in _mistake(Path("/dev/zero"))


def test_an_import_that_is_not_text_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "key.op").write_bytes(b"secret \xff\n")
    (tmp_path / "a.op").write_text('import "key.op"\n')
    told = _mistake(tmp_path / "a.op")
    assert "'key.op' is not UTF-8" in told
    assert "secret" not in told


def test_imports_are_bounded(tmp_path: Path) -> None:
    for k in range(IMPORT_DEPTH + 5):
        (tmp_path / f"a{k}.op").write_text(f'import "a{k + 1}.op"\n')
    (tmp_path / f"a{IMPORT_DEPTH + 5}.op").write_text("")
    assert f"{IMPORT_DEPTH + 1} files import each other in a row" in _mistake(tmp_path / "a0.op")
    for k in range(FILES + 1):
        (tmp_path / f"b{k}.op").write_text("")
    (tmp_path / "b.op").write_text("".join(f'import "b{k}.op"\n' for k in range(FILES + 1)))
    assert f"{FILES + 1} files are imported" in _mistake(tmp_path / "b.op")


def test_a_graph_of_a_model_is_within_bounds(tmp_path: Path) -> None:
    """A thousand definitions over hundreds of weights, as a fused graph gives them."""
    weights = bombs.each(400, '  input w{k}: T[n] """A weight."""\n')
    lets = "".join(
        f"  let t{k}[i] = {'x' if k == 0 else f't{k - 1}'}[i] * w{k % 400}[i] + exp(w{k % 400}[i])\n"
        for k in range(1000)
    )
    (tmp_path / "graph.op").write_text(bombs.op("t999[i]", before=weights + lets))
    assert len(load(tmp_path / "graph.op").ops[0].definitions) == 1001
