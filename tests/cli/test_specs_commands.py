"""`opgen check`, `opgen fmt` and `opgen generate` as a user meets them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import BAD, GOOD, Run

MISTAKES = """bad.op:10:12: error[S012]: unknown type 'U'
    |
 10 |   input y: U[count]
    |            ^

bad.op:17:25: error[S012]: unknown tensor 'w'
    |
 17 |   z[i] = alpha * x[i] + w[i]
    |                         ^

2 errors; 'opgen explain S012' says more
"""


def test_check_says_what_a_good_spec_declares(opgen: Run, good: Path) -> None:
    result = opgen("check", good.name)
    assert (result.returncode, result.stdout, result.stderr) == (0, "small.op: 1 op, 0 functions\n", "")


def test_check_shows_every_mistake_on_stderr(opgen: Run, bad: Path) -> None:
    result = opgen("check", bad.name)
    assert (result.returncode, result.stdout, result.stderr) == (1, "", MISTAKES)


def test_check_goes_through_a_folder_and_past_a_bad_file(opgen: Run, good: Path, bad: Path) -> None:
    result = opgen("check", ".")
    assert result.returncode == 1
    assert result.stdout == "small.op: 1 op, 0 functions\n"
    assert result.stderr == MISTAKES


def test_a_mistake_in_an_imported_file_is_shown_once(opgen: Run, bad: Path, tmp_path: Path) -> None:
    for name in ("one.op", "two.op"):
        (tmp_path / name).write_text('import "bad.op"\n')
    result = opgen("check", "one.op", "two.op")
    assert result.returncode == 1
    assert result.stderr.count("unknown type 'U'") == 1


@pytest.mark.parametrize("command", [("check",), ("fmt",), ("generate", "-o", "out")])
def test_what_is_not_there_is_a_wrong_command_line(opgen: Run, command: tuple[str, ...]) -> None:
    result = opgen(*command, "nothing.op")
    assert result.returncode == 2
    assert "Path 'nothing.op' does not exist." in result.stderr


def test_a_folder_without_specs_is_a_wrong_command_line(opgen: Run, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    result = opgen("check", "empty")
    assert result.returncode == 2
    assert "no .op file in empty" in result.stderr


def test_fmt_leaves_a_formatted_file_alone(opgen: Run, good: Path) -> None:
    before = good.stat().st_mtime_ns
    result = opgen("fmt", good.name)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    assert good.stat().st_mtime_ns == before


def test_fmt_check_finds_and_fmt_mends(opgen: Run, tmp_path: Path) -> None:
    path = tmp_path / "untidy.op"
    path.write_text(GOOD.replace("x[i] + y[i]", "x[i]+y[ i ]  # a comment"))
    check = opgen("fmt", "--check", path.name)
    assert (check.returncode, check.stdout) == (1, "would reformat untidy.op\n")
    assert path.read_text().count("y[ i ]") == 1
    mend = opgen("fmt", path.name)
    assert (mend.returncode, mend.stdout) == (0, "reformatted untidy.op\n")
    assert "x[i] + y[i]" in path.read_text()
    assert "# a comment" in path.read_text()
    assert opgen("fmt", "--check", path.name).returncode == 0


def test_fmt_shows_what_does_not_parse_and_formats_the_rest(opgen: Run, tmp_path: Path) -> None:
    (tmp_path / "a.op").write_text("op {\n")
    (tmp_path / "b.op").write_text(GOOD.replace("x[i] + y[i]", "x[i]+y[i]"))
    result = opgen("fmt", ".")
    assert result.returncode == 1
    assert "a.op:1:4: error[S001]" in result.stderr
    assert (tmp_path / "b.op").read_text() == GOOD


def test_bytes_that_are_no_text_are_refused(opgen: Run, tmp_path: Path) -> None:
    (tmp_path / "a.op").write_bytes(b"op X \xff")
    result = opgen("fmt", "a.op")
    assert (result.returncode, result.stderr) == (1, "error: a.op: not UTF-8 text (byte 5)\n")
    assert opgen("check", "a.op").returncode == 1


def test_generate_writes_once_and_check_agrees(opgen: Run, good: Path, tmp_path: Path) -> None:
    first = opgen("generate", good.name, "-o", "out")
    assert first.returncode == 0
    assert "wrote  out/small.py\n" in first.stdout
    assert first.stderr == ""
    again = opgen("generate", good.name, "-o", "out")
    assert (again.returncode, again.stdout) == (0, "out is up to date\n")
    assert opgen("generate", good.name, "-o", "out", "--check").returncode == 0


def test_generate_check_fails_after_an_edit_by_hand_and_writes_nothing(opgen: Run, good: Path, tmp_path: Path) -> None:
    assert opgen("generate", good.name, "-o", "out").returncode == 0
    module = tmp_path / "out" / "small.py"
    edited = module.read_text() + "# mine\n"
    module.write_text(edited)
    result = opgen("generate", good.name, "-o", "out", "--check")
    assert result.returncode == 1
    assert result.stdout == "differs  out/small.py\n"
    assert result.stderr == "1 file in out is not what the specs give; run 'opgen generate'\n"
    assert module.read_text() == edited


def test_gradients_of_outputs_whose_size_is_an_expression(here: Run, tmp_path: Path) -> None:
    text = "op Longer { type T in {float32} input x: T[n] output y: T[2 * n + 1] y[i] = x[i] else 0 }\n"
    gradient = "gradient of Longer with respect to x input x shape_only input dy like y output dx like x"
    (tmp_path / "longer.op").write_text(f"{text}op LongerGradient {{ {gradient} }}\n")
    done = here("generate", "longer.op", "-o", "out")
    assert done.returncode == 0, done.stderr
    listing = (tmp_path / "out" / "listings" / "longer_gradient.scheduled.loop").read_text()
    assert "n = 16" in listing


def test_an_op_without_sizes_for_a_listing(here: Run, tmp_path: Path) -> None:
    text = 'op Sevens { type T in {float32} input x: T[n] require n % 7 == 3 : x "odd" output y: T[n] y[i] = x[i] }\n'
    (tmp_path / "sevens.op").write_text(text)
    done = here("generate", "sevens.op", "-o", "out")
    assert done.returncode == 0, done.stderr
    assert "`opgen inspect Sevens` shows each stage" in (tmp_path / "out" / "listings" / "sevens.loop").read_text()


def test_a_dry_run_says_what_would_come_and_go(here: Run, good: Path, tmp_path: Path) -> None:
    said = here("generate", good.name, "-o", "out", "--dry-run")
    assert said.returncode == 0
    assert "would write  out/small.py\n" in said.stdout
    assert not (tmp_path / "out").exists()
    assert here("generate", good.name, "-o", "out").returncode == 0
    good.write_text(GOOD.replace("ScaledSum", "OtherSum"))
    would = here("generate", good.name, "-o", "out", "--dry-run").stdout
    assert "would write  out/listings/other_sum.ll\n" in would
    assert "would remove out/listings/scaled_sum.ll\n" in would
    check = here("generate", good.name, "-o", "out", "--check")
    assert check.returncode == 1
    assert "stale    out/listings/scaled_sum.ll\n" in check.stdout
    assert (tmp_path / "out" / "listings" / "scaled_sum.ll").exists()
    done = here("generate", good.name, "-o", "out").stdout
    assert done == would.replace("would write ", "wrote ").replace("would remove", "removed")
    assert not (tmp_path / "out" / "listings" / "scaled_sum.ll").exists()


def test_generate_into_a_project_removes_nothing_of_it(here: Run, good: Path, tmp_path: Path) -> None:
    """`-o .` in a folder of sources that speak of generated files."""
    texts = {
        "code.py": 'MARK = "Generated by opgen from "\n',
        "old/x.py": "# Generated by opgen from small.op. Do not\n",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    done = here("generate", ".", "-o", ".")
    assert done.returncode == 1
    assert (
        done.stderr
        == "error: small.op is in the way: it was not generated by opgen, and is left alone (--overwrite replaces it)\n"
    )
    (tmp_path / "specs").mkdir()
    good.rename(tmp_path / "specs" / good.name)
    done = here("generate", "specs", "-o", ".")
    assert done.returncode == 0
    assert "removed" not in done.stdout
    assert {name: (tmp_path / name).read_text() for name in texts} == texts


def test_generate_writes_nothing_for_a_bad_spec(opgen: Run, bad: Path, tmp_path: Path) -> None:
    result = opgen("generate", bad.name, "-o", "out")
    assert (result.returncode, result.stderr) == (1, MISTAKES)
    assert not (tmp_path / "out").exists()


def test_a_generated_module_runs(opgen: Run, good: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.util

    assert opgen("generate", good.name, "-o", "out").returncode == 0
    found = importlib.util.spec_from_file_location("small", tmp_path / "out" / "small.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    monkeypatch.setenv("OPGEN_CACHE_DIR", str(tmp_path / "cache"))
    assert module.scaled_sum([1.0, 2.0], [10.0, 20.0], alpha=3.0).tolist() == [13.0, 26.0]


def test_the_two_spec_texts_differ_where_the_tests_say() -> None:
    assert sum(a != b for a, b in zip(GOOD.split("\n"), BAD.split("\n"), strict=True)) == 2


WRONG = """op Twice {
  \"\"\"Two times the row.\"\"\"
  type T in {float32}
  input x: T[count] \"\"\"A row.\"\"\"
  output y: T[count] \"\"\"Twice the row.\"\"\"
  y[i] = 2 * x[i]

  example "a row" {
    x = [0, 1]
    y = [0, 999]
  }
}
"""


@pytest.mark.parametrize("command", [("check",), ("generate", "-o", "out")])
def test_a_wrong_example_is_a_mistake_with_both_values(opgen: Run, tmp_path: Path, command: tuple[str, ...]) -> None:
    (tmp_path / "twice.op").write_text(WRONG)
    result = opgen(*command, "twice.op")
    assert result.returncode == 1
    assert result.stderr.startswith("twice.op:10:13: error[S061]: 'y[1]' is 999.0, the op computes 2.0\n")
    assert not (tmp_path / "out").exists()


def test_a_wrong_example_of_an_imported_file_is_told_once(opgen: Run, tmp_path: Path) -> None:
    (tmp_path / "twice.op").write_text(WRONG)
    (tmp_path / "user.op").write_text('import "twice.op"\n')
    assert opgen("check", "twice.op", "user.op").stderr.count("error[S061]") == 1
    assert opgen("check", "user.op").stderr.count("error[S061]") == 1
