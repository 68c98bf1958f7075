"""Forms of generic ops in libraries, `opgen build --form`: interfaces of all ops, results and messages as in Python."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from click.testing import CliRunner, Result

import opgen
from opgen.bindings.c.build import chosen
from opgen.bindings.c.library import library_view
from opgen.bindings.c.render import KernelTable, render_header, render_kernels, render_sources
from opgen.bindings.cpp.render import render_header as render_hpp
from opgen.cli import main
from opgen.cli.built_forms import with_forms
from opgen.diagnostics import UserError
from opgen.diagnostics.calls import ArgumentError
from opgen.grad.load import load
from opgen.spec.call.arguments import CallError
from opgen.spec.generic import Instance, instance
from opgen.spec.generic.examples import examples_of
from opgen.spec.generic.samples import samples
from opgen.spec.model.model import GenericOp, Module
from opgen.spec.syntax.report import Report
from tests.bindings.c.library import INVALID, OK, Library, of, tensor
from tests.bindings.cpp.library import WARNINGS, compile_program, run

ROOT = Path(__file__).parents[2]
ONNX = ROOT / "specs/onnx/onnx_ops.op"
SPEC = ROOT / "tests/specs/generic.op"
STRICT = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"]

FORMS = [
    "Softmax:input=?,?",
    "Columns=Softmax:input=?,?:axis=0",
    "Concat:inputs=?,?:inputs=?,?:inputs=?,?:axis=1",
    "Add:A=?,?:B=?",
    "Product=Gemm:A=?,?:B=?,?:transB=true",
    "Clip:input=?,?:high=",
    "Halves=Split:input=?,?:split=1,2:axis=1:results=2",
]


def first_form(module: Module, op: GenericOp) -> Instance:
    """The first call that `opgen check` tries of an op and that fits, else that of its first example."""
    calls = ((s.arguments, s.given(), s.outputs) for s in samples(op))
    examples = ((c.arguments, c.attributes, c.outputs) for _, c in examples_of(Report(), op))
    for arguments, attributes, outputs in (*calls, *examples):
        try:
            return instance(module, op.name, arguments, attributes, outputs)
        except CallError:
            continue
    raise AssertionError(f"no form of {op.name}")


def test_every_generic_op_has_an_interface_in_c_and_cpp(tmp_path: Path) -> None:
    """A form of each of ONNX's: what is generated compiles without a warning."""
    module = load(ONNX)
    made = [first_form(module, op) for op in module.generics]
    assert len(made) > 150
    ops = tuple(replace(f.op, doc=f.op.doc or f.op.name) for f in made)
    functions = {f.name: f for form in made for f in form.functions}
    forms = chosen(Module("forms", ops, tuple(functions.values())), None)
    view = library_view(forms, "forms", "forms.op")
    table = KernelTable(("x86-64",), tuple((None,) for _ in view.kernels), {}, {}, ())
    (tmp_path / "forms.h").write_text(render_header(forms))
    (tmp_path / "forms.hpp").write_text(render_hpp(forms))
    texts = {**render_sources(view, forms, table), "kernels.c": render_kernels(view, table)}
    for name, text in texts.items():
        (tmp_path / f"forms{'_' if name[0] != '.' else ''}{name}").write_text(text)
    (tmp_path / "all.cpp").write_text('#include "forms.hpp"\n')
    subprocess.run(["gcc", *STRICT, *tmp_path.glob("*.c")], cwd=tmp_path, check=True)
    subprocess.run(["g++", "-std=c++17", *WARNINGS, "-fsyntax-only", "all.cpp"], cwd=tmp_path, check=True)


def built(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["build", *arguments, "--target", "x86-64-v3", "--jobs", "1"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("forms")
    forms = place / "forms.txt"
    forms.write_text("# those that are used below\n" + "\n".join(FORMS) + "\n")
    done = built(str(SPEC), "-o", str(place), "--form", str(forms))
    assert done.exit_code == 0, done.output
    return place


@pytest.fixture(scope="module")
def library(folder: Path) -> Library:
    return Library(with_forms(load(SPEC), FORMS), folder)


@pytest.fixture(scope="module")
def ops() -> ModuleType:
    return opgen.load(SPEC)


X = np.arange(6, dtype=np.float32).reshape(2, 3)
ROW = np.array([1, 10, 100], np.float32)

CALLS = {
    "Softmax": ([X], "softmax(X)"),
    "Columns": ([X], "softmax(X, axis=0)"),
    "Concat": ([X, X + 1, X[:, :1].copy()], "concat([X, X + 1, X[:, :1]], axis=1)"),
    "Add": ([X, ROW], "add(X, ROW)"),
    "Product": ([X, X + 2], "gemm(X, X + 2, transB=True)"),
    "Clip": ([X, np.array(2, np.float32)], "clip(X, None, np.float32(2))"),
    "Halves": ([X], "split(X, [1, 2], axis=1, results=2)"),
}
"""The inputs of each form, and the same call in Python."""


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_forms_give_the_results_of_python(name: str, dtype: str, library: Library, ops: ModuleType) -> None:
    inputs, call = CALLS[name]
    op = library.module.op(name)
    if dtype not in [t.name for t in op.type_variables[0].allowed]:
        dtype = "float32"
    found = eval(f"ops.{call}", {"ops": ops, "X": X.astype(dtype), "ROW": ROW.astype(dtype), "np": np})
    expected = found if isinstance(found, tuple) else (found,)
    out = [np.zeros(e.shape, e.dtype) for e in expected]
    assert library.run(op, [of(i.astype(expected[0].dtype)) for i in inputs], {}, list(map(of, out))) == OK, (
        library.error()
    )
    for one, other in zip(out, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


WRONG = {
    "Add": ([(2, 3), (2,)], "add(np.ones((2, 3), 'f'), np.ones(2, 'f'))"),
    "Concat": ([(2, 3), (4, 3), (2, 1)], "concat([np.ones(s, 'f') for s in ((2, 3), (4, 3), (2, 1))], axis=1)"),
    "Product": ([(2, 3), (4, 5)], "gemm(np.ones((2, 3), 'f'), np.ones((4, 5), 'f'), transB=True)"),
}


@pytest.mark.parametrize("name", WRONG)
def test_forms_say_what_python_says(name: str, library: Library, ops: ModuleType) -> None:
    """But for the name, where the form has one of its own."""
    shapes, call = WRONG[name]
    with pytest.raises(ArgumentError) as caught:
        eval(f"ops.{call}", {"ops": ops, "np": np})
    op = library.module.op(name)
    assert library.run(op, [tensor(s, "float32", np.ones(s, np.float32)) for s in shapes], {}, []) == INVALID
    assert library.error().partition(":")[2] == str(caught.value).partition(":")[2]
    assert library.error().startswith(f"{name}: ")


PROGRAM = """
#include <iostream>
#include "generic.hpp"

using namespace generic;

int main() {
  const Tensor x({1.0f, 2.0f, 3.0f, 4.0f}, {2, 2});
  const auto product = generic::product(x, x, ops::Product::Alpha(2));
  std::cout << product.value().flat<float>()(1) << "\\n";
  const Scope scope = Scope::NewRootScope();
  const auto joined = ops::Concat(scope, x, x, x);
  std::vector<Tensor> results;
  TF_CHECK_OK(ClientSession(scope).Run({joined}, &results));
  std::cout << results[0].NumElements() << "\\n";
  std::cout << generic::softmax(Tensor(1.0f)).status().message() << "\\n";
}
"""


def test_forms_are_ops_in_cpp(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "main.cpp").write_text(PROGRAM)
    made = compile_program(tmp_path / "main.cpp", tmp_path / "main", "-DGENERIC_AS_TENSORFLOW", libraries=[folder])
    said = "Softmax: argument 'input': expected a tensor of rank 2, given shape []"
    assert run(made) == f"22\n12\n{said}\n"


def test_what_a_form_says_of_an_attribute_is_its_default() -> None:
    module = with_forms(load(SPEC), ["Twice=Gemm:A=?,?:B=?,?:alpha=2", "Gemm:A=?,?:B=?,?"])
    assert [module.op(name).attr("alpha").default for name in ("Twice", "Gemm")] == [2.0, 1.0]
    assert module.op("Twice").doc.endswith("The form of Gemm for A=?,?, B=?,?, alpha=2.")


def test_an_op_alone_is_the_form_of_its_first_example() -> None:
    module = with_forms(load(ONNX), ["Softmax"])
    assert [i.rank for i in module.op("Softmax").tensors] == [2]


REFUSED = {
    "Softmaxx": "no such generic op 'Softmaxx'; did you mean 'Softmax'?",
    "Gemm:A=?,?": "a form of 'Gemm' also needs B=...",
    "Conv": "a form of 'Conv' also needs X=..., W=...",
    "class=Softmax:input=?": "'class' is a keyword of Python",
    "2x=Softmax:input=?": "'2x' is no name of an op",
    "Softmax:input=?:axis=3": "Softmax: argument 'axis': expected an axis from -1 to 0, given 3",
    "Softmax:input=?:axes=3": "--attr axes=3: no such name 'axes'; did you mean 'axis'?",
    "Split:input=?,?:results=x": "results=x: expected a number of results",
    "Status=Softmax:input=?": "the function of 'Status' would have a name of the C or C++ interface's own, 'status'",
}


@pytest.mark.parametrize("form", REFUSED)
def test_forms_that_cannot_be_are_refused(form: str) -> None:
    with pytest.raises(UserError) as caught:
        with_forms(load(SPEC), [form])
    assert str(caught.value) == f"--form {form}: {REFUSED[form]}"


def test_two_forms_of_one_name_are_refused() -> None:
    with pytest.raises(UserError) as caught:
        with_forms(load(SPEC), ["Softmax:input=?", "Softmax:input=?,?"])
    said = "--form Softmax:input=?,?: there is an op 'Softmax' already; give another name: NAME=Softmax:input=?,?"
    assert str(caught.value) == said


TWO = {"adds": "Add", "pairs": "Pair"}
"""Spec files of a generic op each."""


def two_files(folder: Path) -> list[str]:
    """Each has a plain op, too."""
    for name, op in TWO.items():
        (folder / f"{name}.op").write_text(f"""op {op} {{
  input x: float32[s...]
  output y: float32[s...]
  y[i...] = x[i...] + x[i...]
}}
op {op}Rows {{
  input x: float32[n]
  output y: float32[n]
  y[i] = x[i] + 1
}}
""")
    return [str(folder / f"{name}.op") for name in TWO]


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("--form=Pairs:x=?", "no such generic op 'Pairs'; did you mean 'Pair'?"),
        ("--form=Pair:y=?", "no such name 'y'"),
        ("--specialize=PairRow:x=4", "no such op 'PairRow'; did you mean 'PairRows'?"),
        ("--ops=PairRows", "no such op 'PairRows'"),
    ],
)
def test_of_several_files_nothing_is_written_after_a_mistake(tmp_path: Path, option: str, said: str) -> None:
    done = built(*two_files(tmp_path), "-o", str(tmp_path / "out"), option)
    assert done.exit_code != 0
    assert said in done.output
    assert not (tmp_path / "out").exists()


def test_forms_and_calls_go_to_the_files_that_have_the_op(tmp_path: Path) -> None:
    options = ["--form", "Pair:x=?,?", "--specialize", "AddRows:x=4"]
    done = built(*two_files(tmp_path), "-o", str(tmp_path / "out"), *options)
    assert done.exit_code == 0, done.output
    assert "adds.op: 1 generic ops are left out" in done.output
    headers = [(tmp_path / f"out/include/{name}.h").read_text() for name in TWO]
    assert ["pairs_pair(" in header for header in headers] == [False, True]


def test_without_forms_the_command_says_how_to_ask_for_one(tmp_path: Path) -> None:
    done = built(str(SPEC), "-o", str(tmp_path))
    assert done.exit_code != 0
    said = "a library has forms of fixed ranks (say which with --form, such as --form Add:INPUT=?,?)"
    assert f"all ops of 'generic' are generic: {said}" in done.output
