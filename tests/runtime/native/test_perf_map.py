"""`OPGEN_PERF=map`: `perf` knows loaded functions by name."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import textwrap
from pathlib import Path

CALLS = """
    import os, sys, warnings
    from pathlib import Path
    import numpy as np
    import opgen
    from opgen.ops import nn
    from opgen.runtime.kernels.kernel import compile_kernel
    from tests.support.kernels import row_sums

    own = Path(f"/tmp/perf-{os.getpid()}.map")

    def call():
        return nn.conv2d(np.ones((1, 4, 4, 1), np.float32), np.ones((1, 1, 1, 1), np.float32), [1, 1, 1, 1], "SAME")
"""


def run(program: str, word: str = "map") -> subprocess.CompletedProcess[str]:
    """A program after CALLS, in a process of its own; its map is removed."""
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(CALLS) + textwrap.dedent(program)],
        env={**os.environ, "OPGEN_PERF": word},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    out, errors = process.communicate()
    Path(f"/tmp/perf-{process.pid}.map").unlink(missing_ok=True)
    return subprocess.CompletedProcess(process.args, process.returncode, out, errors)


def test_every_loaded_function_has_a_line() -> None:
    done = run(
        """
        kernel = compile_kernel(row_sums())
        call()
        model = opgen.compile(lambda x, w: nn.conv2d(x, w, [1, 1, 1, 1], "VALID"))
        model(np.ones((1, 5, 5, 1), np.float32), np.ones((2, 2, 1, 1), np.float32))
        print(f"{kernel.address:x}")
        print(own.read_text())
        """
    )
    assert (done.returncode, done.stderr) == (0, "")
    address, _, text = done.stdout.partition("\n")
    rows = [line.split() for line in text.splitlines() if line]
    assert all(len(row) == 3 and int(row[0], 16) and int(row[1], 16) for row in rows)
    named = {name: start for start, _, name in rows}
    assert named["opgen::row_sums"] == address
    assert "opgen::conv2d_float32_NHWC" in named
    assert "opgen::opgen_parallel_for" in named, "the pool"
    assert any(name.startswith("opgen::Conv2D::kernel_") for name in named), "the kernel of a node"
    assert any(name.endswith("::opgen_program") for name in named), "the entry of a program"
    ends = sorted((int(start, 16), int(start, 16) + int(size, 16)) for start, size, _ in rows)
    assert all(end <= start for (_, end), (start, _) in itertools.pairwise(ends)), "functions overlap"


def test_a_forked_child_has_its_own() -> None:
    done = run(
        """
        call()
        before = own.read_text()
        child = os.fork()
        if child == 0:
            compile_kernel(row_sums())
            os._exit(0)
        os.waitpid(child, 0)
        other = Path(f"/tmp/perf-{child}.map")
        print(own.read_text() == before, other.read_text().startswith(before), "row_sums" in other.read_text())
        other.unlink()
        """
    )
    assert (done.stdout, done.stderr) == ("True True True\n", "")


def test_what_other_writers_of_the_process_wrote_stays_and_what_an_earlier_process_left_goes() -> None:
    done = run(
        """
        own.write_text("1000 10 other\\n")
        call()
        print(own.read_text().startswith("1000 10 other\\n"))
        """
    )
    assert (done.stdout, done.stderr) == ("True\n", "")
    done = run(
        """
        own.write_text("1000 10 earlier\\n")
        os.utime(own, (1, 1))
        call()
        print("earlier" in own.read_text(), "conv2d" in own.read_text())
        """
    )
    assert (done.stdout, done.stderr) == ("False True\n", "")


def test_no_link_is_followed(tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_text("as it was")
    done = run(
        f"""
        target = Path({str(target)!r})
        own.symlink_to(target)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            print(call().shape)
        print(target.read_text(), own.is_symlink(), [str(w.message).split(":")[0] for w in caught])
        """
    )
    assert (done.stdout, done.stderr) == ("(1, 4, 4, 1)\nas it was True ['OPGEN_PERF=map']\n", "")


def test_a_word_without_meaning_is_an_error_of_the_first_call() -> None:
    done = run("call()", word="maps")
    assert done.stderr.splitlines()[-1].endswith(
        "UserError: OPGEN_PERF is 'maps', expected map (write /tmp/perf-PID.map) or nothing"
    )
