"""A call that an earlier process made: found without spec or compiler, built again if what was kept is damaged."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from opgen.cache.entries import KernelCache

ROOT = Path(__file__).parents[3]

CALL = """
import sys
sys.path.insert(0, "generated")
import numpy as np
import nn_ops
size = int(sys.argv[1])
x = np.random.default_rng(7).standard_normal((1, size, 6, 4)).astype(np.float32)
w = np.random.default_rng(8).standard_normal((3, 3, 4, 8)).astype(np.float32)
y = nn_ops.conv2d(x, w, [1, 1, 1, 1], "SAME")
print(y.tobytes().hex())
print("opgen.lower" in sys.modules)
print("lark" in sys.modules)
"""


def call(cache: Path, policy: str = "auto", size: int = 5) -> list[str]:
    """The bytes of the result, whether a kernel was built, and whether the text of the spec was read."""
    environment = {**os.environ, "OPGEN_CACHE_DIR": str(cache), "OPGEN_SPECIALIZE": policy}
    done = subprocess.run(
        [sys.executable, "-c", CALL, str(size)], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.split()


def test_the_second_process_needs_no_spec(tmp_path: Path) -> None:
    first = call(tmp_path)
    assert first[1:] == ["True", "True"]
    assert call(tmp_path) == [first[0], "False", "False"]


def test_the_spec_is_read_once(tmp_path: Path) -> None:
    call(tmp_path)
    assert call(tmp_path, size=6)[1:] == ["True", "False"]


@pytest.mark.parametrize("payload", [b"", b"no pickle", pickle.dumps(("another", "thing"))])
def test_a_spec_that_is_none_is_read_again(tmp_path: Path, payload: bytes) -> None:
    first = call(tmp_path)
    kept = KernelCache(tmp_path)
    keys = [p.name.split(".")[0] for p in tmp_path.rglob("*") if p.is_file()]
    models = [key for key in keys if b"opgen.spec.model.model" in (kept.load(key) or b"")]
    assert len(models) == 1
    assert kept.store(models[0], payload)
    assert call(tmp_path, "never") == [first[0], "True", "True"]
    assert call(tmp_path, size=6)[1:] == ["True", "False"]


def test_the_policy_never_takes_nothing_from_the_shelf(tmp_path: Path) -> None:
    call(tmp_path)
    assert call(tmp_path, "never")[1] == "True"


@pytest.mark.parametrize("payload", [b"", b"no pickle", pickle.dumps(("another", "thing"))])
def test_an_entry_that_is_none_is_built_again(tmp_path: Path, payload: bytes) -> None:
    """Entries that are whole as entries of the cache, and hold something else than they should."""
    first = call(tmp_path)
    kept = KernelCache(tmp_path)
    keys = [p.name.split(".")[0] for p in tmp_path.rglob("*") if p.is_file()]
    shelved = [key for key in keys if b"_Entry" in (kept.load(key) or b"")]
    assert len(shelved) == 1
    assert kept.store(shelved[0], payload)
    assert call(tmp_path) == [first[0], "True", "False"]
    assert call(tmp_path) == [first[0], "False", "False"]
