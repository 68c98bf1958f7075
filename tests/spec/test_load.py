"""Loading: imports, merging, flattening, and what the files of the repository resolve to."""

from __future__ import annotations

import hashlib
import json
import logging
from importlib import resources
from pathlib import Path

import lark
import pytest

from opgen.diagnostics import DiagnosticError
from opgen.spec import flatten, load, load_text
from opgen.spec.model import model as m
from opgen.spec.resolve.names import snake_case
from opgen.spec.syntax import tables

ROOT = Path(__file__).parents[2]
NN_OPS = ROOT / "specs/nn_ops.op"
SAMPLES = ROOT / "tests/specs/samples.op"


@pytest.fixture(scope="module")
def nn_ops() -> m.Module:
    return load(NN_OPS)


@pytest.fixture(scope="module")
def samples() -> m.Module:
    return load(SAMPLES)


def test_the_grammar_has_no_conflict(caplog: pytest.LogCaptureFixture) -> None:
    """Lark settles a shift/reduce conflict by shifting and tells only its debug log."""
    text = resources.files("opgen.spec.syntax").joinpath("grammar.lark").read_text(encoding="utf-8")
    level = lark.logger.level
    lark.logger.setLevel(logging.DEBUG)
    lark.logger.propagate = True
    try:
        with caplog.at_level(logging.DEBUG, logger=lark.logger.name):
            lark.Lark(text, parser="lalr", start=["start", "open"], debug=True)
    finally:
        lark.logger.setLevel(level)
    assert [r.getMessage() for r in caplog.records if "conflict" in r.getMessage().lower()] == []


def test_the_tables_are_those_of_the_grammar() -> None:
    """`python -m tools.tables` writes them; with another lark they are made anew, and the result is the same."""
    grammar = resources.files("opgen.spec.syntax").joinpath("grammar.lark").read_text(encoding="utf-8")
    kept = json.loads(resources.files("opgen.spec.syntax").joinpath(tables.NAME).read_text(encoding="utf-8"))
    assert kept["made_of"][1] == hashlib.sha256(grammar.encode()).hexdigest(), "run python -m tools.tables"
    if kept["made_of"][0] == lark.__version__:
        whole = resources.files("opgen.spec.syntax").joinpath(tables.NAME).read_text(encoding="utf-8")
        assert tables.text() == whole, "run python -m tools.tables"
    parsers = (tables.parser(), tables.made(grammar))
    for text in (NN_OPS.read_text(encoding="utf-8"), SAMPLES.read_text(encoding="utf-8")):
        assert len({p.parse(text, start="start").pretty() for p in parsers}) == 1
        wrong = text.replace("input", "inputs +", 1)
        found = []
        for p in parsers:
            with pytest.raises(lark.UnexpectedInput) as error:
                p.parse(wrong, start="start")
            found.append((error.value.pos_in_stream, sorted(getattr(error.value, "accepts", None) or ())))
        assert found[0] == found[1]


@pytest.mark.parametrize("content", [None, "", "[1]", "{}", '{"made_of":["0",""],"data":{},"memo":{}}'])
def test_other_tables_are_not_used(content: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "tables.json").write_text(content)
    monkeypatch.setattr(tables, "NAME", tmp_path / "tables.json")
    assert tables.kept("start: ") is None


def test_ops_signatures_and_functions(nn_ops: m.Module) -> None:
    found = {op.name: (op.function_name, op.signature) for op in nn_ops.ops}
    expected = {
        "Conv2D": (
            "conv2d",
            (
                "input", "filter", "strides", "padding", "use_cudnn_on_gpu", "explicit_paddings", "data_format",
                "dilations", "name",
            ),
        ),
        "DepthwiseConv2dNative": (
            "depthwise_conv2d_native",
            ("input", "filter", "strides", "padding", "explicit_paddings", "data_format", "dilations", "name"),
        ),
        "depthwise_conv2d": (
            "depthwise_conv2d",
            ("input", "filter", "strides", "padding", "rate", "name", "data_format", "dilations"),
        ),
    }  # fmt: skip
    assert {name: found[name] for name in expected} == expected


def test_attributes_resolve(nn_ops: m.Module) -> None:
    conv = nn_ops.op("Conv2D")
    paddings = conv.attr("explicit_paddings")
    assert (paddings.shape, paddings.optional, paddings.default, paddings.minimum) == ((4, 2), True, (), 0)
    assert conv.attr("use_cudnn_on_gpu").compatibility
    assert conv.attr("data_format").values == ("NHWC", "NCHW")
    depthwise = nn_ops.op("depthwise_conv2d")
    assert depthwise.attr("padding").payload == ("EXPLICIT", "paddings")
    assert depthwise.attr("paddings").carried_by == "padding"
    assert depthwise.attr("rate").alias == "dilations"


def extents(op: m.OpSpec, tensor: str) -> dict[str, m.Expr]:
    """The ranges of a definition's indices and of the first reduction in it."""
    definition = next(d for d in op.definitions if d.tensor == tensor)
    found = {r.name: r.extent for r in definition.indices}
    value = definition.value
    return found | ({r.name: r.extent for r in value.indices} if isinstance(value, m.Reduce) else {})


def test_index_ranges_are_inferred(nn_ops: m.Module, samples: m.Module) -> None:
    names = {"n": "batch", "y": "out_height", "x": "out_width", "g": "groups", "k": "group_outputs"}
    taps = {"r": "filter_height", "s": "filter_width", "c": "group_channels"}
    expected = {index: m.Symbol(symbol) for index, symbol in (names | taps).items()}
    assert extents(nn_ops.op("Conv2D"), "output") == expected
    pool = extents(samples.op("MaxPool"), "output")
    assert pool["r"] == m.AttrValue("ksize", (1,))
    # Nothing in the sum tells the range of y and x: the output that copies the `let` tensor does.
    fused = extents(samples.op("ConvBiasRelu"), "total")
    assert (fused["y"], fused["x"]) == (m.Symbol("out_height"), m.Symbol("out_width"))


def test_literals_and_attributes_take_the_type_of_elements(samples: m.Module) -> None:
    value = samples.op("ScaledAdd").definitions[0].value
    assert isinstance(value, m.Operation)
    assert isinstance(value.left, m.Operation)
    assert value.left.left == m.Convert("T", m.AttrValue("alpha"))
    mean = samples.op("LayerNorm").definitions[0].value
    assert isinstance(mean, m.Operation)
    assert mean.right == m.Convert("T", m.Symbol("features"))


@pytest.mark.parametrize("path", [NN_OPS, SAMPLES], ids=lambda p: p.name)
def test_flattened_text_has_the_same_ops(path: Path) -> None:
    text = flatten(path)
    assert "import" not in text
    files, alone = load(path), load_text(text, path.name)
    assert alone.ops == files.ops
    assert alone.functions == files.functions


def test_files_merge_and_are_read_once(tmp_path: Path) -> None:
    (tmp_path / "common.op").write_text("function halved(n) -> m {\n  return n // 2\n}\n")
    for name in ("one", "two"):
        (tmp_path / f"{name}.op").write_text(
            f'"""{name}."""\n\nimport "common.op"\n\nop {name.title()} {{\n  type T in {{float32}}\n'
            "  input x: T[n]\n  output y: T[halved(n)]\n  y[i] = x[i] else 0\n}\n"
        )
    module = load([tmp_path / "one.op", tmp_path / "two.op"])
    assert [op.name for op in module.ops] == ["One", "Two"]
    assert [f.name for f in module.functions] == ["halved"]
    assert module.name == "one"
    assert module.doc == "one.\n\ntwo."


def test_a_name_that_no_file_can_have(tmp_path: Path) -> None:
    (tmp_path / "a.op").write_text(f'import "{"x" * 300}.op"\n')
    with pytest.raises(DiagnosticError, match="name too long") as caught:
        load(tmp_path / "a.op")
    assert [(d.code, d.span.line) for d in caught.value.diagnostics if d.span] == [("S002", 1)]


def test_errors_of_all_files_come_together(tmp_path: Path) -> None:
    (tmp_path / "a.op").write_text('import "b.op"\nop A {\n  let x = \n}\n')
    (tmp_path / "b.op").write_text("op B {\n  let y = )\n}\n")
    with pytest.raises(DiagnosticError) as caught:
        load(tmp_path / "a.op")
    places = [str(d.span) for d in caught.value.diagnostics]
    assert places == [f"{tmp_path / 'a.op'}:4:1"]
    (tmp_path / "a.op").write_text('import "b.op"\nimport "c.op"\n')
    with pytest.raises(DiagnosticError) as caught:
        load(tmp_path / "a.op")
    assert [d.code for d in caught.value.diagnostics] == ["S001", "S002"]


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(DiagnosticError) as caught:
        load(ROOT / "specs/window_.op")
    assert caught.value.diagnostics[0].help == "did you mean 'window.op'?"
    assert caught.value.diagnostics[0].message.endswith("No such file or directory")


def test_bytes_that_are_not_text(tmp_path: Path) -> None:
    path = tmp_path / "x.op"
    path.write_bytes(b"op A {\n  \xff\n}\n")
    with pytest.raises(DiagnosticError) as caught:
        load(path)
    assert str(caught.value.diagnostics[0].span) == f"{path}:2:3"
    assert caught.value.diagnostics[0].message == f"'{path}' is not UTF-8"


def test_text_in_no_folder_imports_nothing() -> None:
    with pytest.raises(DiagnosticError, match=r"cannot import 'window.op': this text lies in no folder"):
        load_text('import "window.op"\n')
    with pytest.raises(DiagnosticError, match="cannot read"):
        load_text('import "a\0b"\n', base=ROOT)
    with pytest.raises(DiagnosticError, match="cannot read"):
        load_text(f'import "../{"a" * 300}/b.op"\n', base=ROOT)  # longer than any file's name


def test_text_of_any_kind_stays_data() -> None:
    """Quotes, comment ends, template syntax and code in strings and docstrings come out as they went in."""
    doc = 'It\'s "quoted" */ {{ 7 * 7 }} {% raw %} ${x} \\ `rm` // # not a comment <script>'
    head = f'op A {{\n  """{doc}"""\n  type T in {{float32}}\n  input x: T[n] """{doc}"""\n'
    text = head + "  output y: T[n]\n  y[i] = x[i]\n}\n"
    op = load_text(text).ops[0]
    assert op.doc == doc
    assert op.tensors[0].doc == doc


@pytest.mark.parametrize(
    ("op", "function"),
    [
        ("Conv2D", "conv2d"),
        ("DepthwiseConv2dNativeBackpropInput", "depthwise_conv2d_native_backprop_input"),
        ("Conv2DBackpropFilterV2", "conv2d_backprop_filter_v2"),
        ("MatMul", "mat_mul"),
        ("LRN", "lrn"),
        ("FFT2D", "fft2d"),
        ("depthwise_conv2d", "depthwise_conv2d"),
    ],
)
def test_function_names_follow_tensorflow(op: str, function: str) -> None:
    assert snake_case(op) == function


def test_shipped_specs_are_found_by_their_place(tmp_path: Path) -> None:
    (tmp_path / "mine.op").write_text('import "onnx/normalisation.op"\nimport "nn_ops.op"\n')
    module = load(tmp_path / "mine.op")
    assert {"Softmax", "Conv2D"} <= {op.name for op in (*module.ops, *module.generics)}
    (tmp_path / "onnx").mkdir()
    (tmp_path / "onnx" / "normalisation.op").write_text("")
    assert {op.name for op in load(tmp_path / "mine.op").generics} == set()
    for outside in ("../specs/nn_ops.op", "onnx/../nn_ops.op", str(tmp_path / "nn_ops.op")):
        (tmp_path / "mine.op").write_text(f'import "{outside}"\n')
        with pytest.raises(DiagnosticError, match="cannot read"):
            load(tmp_path / "mine.op")
