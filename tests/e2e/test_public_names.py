"""What a user who imports opgen finds: its public names, and the operators that come with it, installed or not."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import opgen

ROOT = Path(__file__).parents[2]
PROGRAM = """
import numpy as np
from opgen.ops import nn, onnx
print(nn.conv2d(np.ones((1, 2, 2, 1)), np.ones((1, 1, 1, 1)), [1, 1, 1, 1], "SAME").sum(), onnx.relu([-1.0, 2.0]))
print(nn.conv2d.__globals__["__file__"])
"""


def test_every_public_name_is_shown_and_there() -> None:
    assert set(opgen.__all__) <= set(dir(opgen))
    assert all(getattr(opgen, name) is not None for name in opgen.__all__)
    shown = {name for name in dir(opgen) if not name.startswith("_")}
    assert shown == set(opgen.__all__) - {"__version__"}


def test_looking_at_the_names_imports_nothing() -> None:
    costly = ("numpy", "llvmlite", "lark")
    program = f"import sys, opgen; dir(opgen); dir(opgen.ops); print([n for n in {costly} if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_ops_have_the_functions_of_the_generated_modules() -> None:
    from generated import nn_ops, onnx_ops
    from opgen.ops import nn, onnx

    assert (nn.__all__, onnx.__all__) == (nn_ops.__all__, onnx_ops.__all__)
    assert dir(opgen.ops) == ["nn", "onnx"]
    assert opgen.ops.nn is nn


def test_an_installed_copy_has_the_ops_and_the_pages_of_the_language(tmp_path: Path) -> None:
    """Laid out as pyproject.toml tells the builder of the wheel."""
    project = (ROOT / "pyproject.toml").read_text()
    section = project.split("[tool.hatch.build.targets.wheel.force-include]\n")[1].split("\n[")[0]
    shutil.copytree(ROOT / "opgen", tmp_path / "opgen", ignore=shutil.ignore_patterns("__pycache__"))
    for source, target in re.findall(r'^"(.+)" = "(.+)"$', section, re.MULTILINE):
        copy = shutil.copytree if (ROOT / source).is_dir() else shutil.copyfile
        copy(ROOT / source, tmp_path / target)
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.stdout == f"4.0 [0. 2.]\n{tmp_path}/opgen/ops/nn_ops.py\n", done.stderr
    assert (tmp_path / "opgen" / "specs" / "LANGUAGE.md").is_file()
    assert 'exclude = ["/opgen/schedule/EXPERIMENTS.md"]' in project
