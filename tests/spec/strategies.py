"""Hypothesis strategies for syntax trees, such as the parser could give."""

from __future__ import annotations

from hypothesis import strategies as st

from opgen.diagnostics import Source, Span
from opgen.spec.syntax import nodes as s
from opgen.spec.syntax.strings import clean_doc

SOURCE = Source("generated", "")
AT = Span(SOURCE, 1, 1, 1, 2)

names = st.sampled_from(
    ["a", "b1", "input", "output", "rows", "long_name_for_breaking_lines", "type", "x", "T", "sizes", "outputs", "rank"]
)
idents = names.map(lambda n: s.Ident(AT, n))
integers = st.integers(0, 10**6).map(str)
numbers = st.sampled_from(["0", "1", "0.5", "1e-3", "17", "2.5E+10"])
words = st.sampled_from(["SAME", "VALID", "true", "inf", "-inf"])
anything = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
strings = anything.filter(lambda t: "\r\n" not in t).map(lambda t: s.Text(AT, t))
docs = (
    anything.map(lambda t: clean_doc(t.replace('"""', "").replace("\r\n", "")))
    .filter(lambda t: t and '"""' not in t)
    .map(lambda t: s.Doc(AT, t))
)
maybe_docs = st.none() | docs


def tuples(strategy: st.SearchStrategy[object], least: int = 0, most: int = 3) -> st.SearchStrategy[tuple[object, ...]]:
    return st.lists(strategy, min_size=least, max_size=most).map(tuple)


def _larger(inner: st.SearchStrategy[s.Expression]) -> st.SearchStrategy[s.Expression]:
    operators = st.sampled_from(["+", "-", "*", "/", "//", "%", "==", "!=", "<", "<=", ">", ">=", "and", "or"])
    spread = inner | st.builds(s.Expansion, st.just(AT), inner)
    ranges = st.builds(s.Range, st.just(AT), idents, st.none() | inner) | st.builds(
        s.Range, st.just(AT), idents, st.none() | spread, st.just(True)
    )
    return st.one_of(
        st.builds(s.Chain, st.just(AT), inner, inner, st.none() | inner),
        st.builds(s.Listed, st.just(AT), tuples(spread)),
        st.builds(s.Binary, st.just(AT), operators, inner, inner),
        st.builds(s.Unary, st.just(AT), st.sampled_from(["-", "not"]), inner),
        st.builds(s.Choice, st.just(AT), inner, inner, inner),
        st.builds(
            s.Call, st.just(AT), idents, tuples(spread), tuples(st.builds(s.Keyword, st.just(AT), idents, inner))
        ),
        st.builds(s.Subscripted, st.just(AT), idents, tuples(spread), st.none() | inner),
        st.builds(s.Member, st.just(AT), idents, idents, tuples(inner, 0, 1)),
        st.builds(
            s.Reduction,
            st.just(AT),
            st.sampled_from(["sum", "prod", "max", "min"]),
            tuples(ranges, 1),
            inner,
            st.none() | inner,
        ),
    )


leaves = st.builds(s.Named, st.just(AT), names) | st.builds(s.Constant, st.just(AT), numbers | st.just("true"))
expressions = st.recursive(leaves, _larger, max_leaves=12)

scalars = st.builds(s.Named, st.just(AT), words) | st.builds(
    s.Constant, st.just(AT), numbers | numbers.map(lambda n: "-" + n)
)
values = st.recursive(scalars, lambda v: st.builds(s.ListValue, st.just(AT), tuples(v)), max_leaves=10)
signed = st.builds(s.Constant, st.just(AT), numbers)
spread_expressions = expressions | st.builds(s.Expansion, st.just(AT), expressions)
dims = st.builds(s.Dim, st.just(AT), spread_expressions, st.none() | integers, st.booleans())
bindings = st.builds(s.Binding, st.just(AT), idents, integers)
forms = st.builds(s.Form, st.just(AT), tuples(dims), st.none() | idents, tuples(bindings, 0, 2))
like_forms = st.builds(s.Form, st.just(AT), st.just(()), st.none(), tuples(bindings, 0, 2), idents)
words_with_payload = st.builds(s.Word, st.just(AT), idents, st.none() | idents)
attr_types = st.builds(
    s.AttrType,
    st.just(AT),
    st.sampled_from(["int", "bool", "float"]).map(lambda n: s.Ident(AT, n)),
    tuples(integers | st.just("...") | expressions.filter(lambda e: not isinstance(e, s.Constant))),
    st.just(()),
) | st.builds(
    s.AttrType,
    st.just(AT),
    st.sampled_from(["enum", "layout", "type"]).map(lambda n: s.Ident(AT, n)),
    tuples(integers | st.just("..."), 0, 1),
    tuples(words_with_payload, 1),
)
lets = st.builds(s.LetDecl, st.just(AT), tuples(idents, 1), expressions)
ranges = st.builds(s.Range, st.just(AT), idents, st.none() | expressions) | st.builds(
    s.Range, st.just(AT), idents, st.none() | spread_expressions, st.just(True)
)
rank_rules = st.builds(s.RankRule, st.just(AT), idents, integers, st.none(), st.none()) | st.builds(
    s.RankRule, st.just(AT), idents, st.none(), expressions, st.none() | idents
)

forms_taken = (
    st.none()
    | st.builds(s.Elements, st.just(AT), tuples(idents, 1), signed)
    | st.builds(s.InPlace, st.just(AT), idents, idents)
)
taken = st.one_of(
    st.builds(s.Taken, st.just(AT), idents, st.none(), st.just(False), forms_taken, st.none() | values),
    st.builds(s.Taken, st.just(AT), idents, idents, st.booleans(), forms_taken, st.none() | values),
)

items = st.one_of(
    st.builds(s.SignatureDecl, st.just(AT), tuples(taken, 1)),
    st.builds(s.SignatureDecl, st.just(AT), tuples(taken, 1), strings, st.none() | idents),
    st.builds(s.TypeDecl, st.just(AT), idents, tuples(idents, 1)),
    st.builds(
        s.TensorDecl,
        st.just(AT),
        st.sampled_from(["input", "output"]),
        idents,
        idents,
        tuples(dims),
        st.none() | idents,
        st.booleans(),
        maybe_docs,
        st.booleans(),
    ),
    st.builds(
        s.SeveralDecl, st.just(AT), st.sampled_from(["inputs", "outputs"]), idents, idents, tuples(dims), maybe_docs
    ),
    st.builds(s.StaticDecl, st.just(AT), idents, idents, st.booleans(), st.booleans(), maybe_docs),
    st.builds(s.RankDecl, st.just(AT), tuples(rank_rules, 1)),
    st.builds(s.VersionsDecl, st.just(AT), integers, st.none() | integers, st.none() | idents),
    st.builds(s.PackLet, st.just(AT), tuples(idents, 1), expressions),
    st.builds(
        s.InheritedDecl,
        st.just(AT),
        st.sampled_from(["input", "output"]),
        idents,
        st.none() | idents,
        st.booleans(),
        maybe_docs,
    ),
    st.builds(s.SizesDecl, st.just(AT), idents, tuples(forms, 1), maybe_docs),
    st.builds(s.SizesDecl, st.just(AT), idents, st.tuples(like_forms, forms) | st.tuples(like_forms), maybe_docs),
    st.builds(
        s.AttrDecl,
        st.just(AT),
        idents,
        attr_types,
        st.none() | signed,
        st.none() | signed,
        st.none() | idents,
        st.none() | values,
        st.booleans(),
        st.none() | strings,
        st.none() | idents,
        maybe_docs,
    ),
    st.builds(s.UseDecl, st.just(AT), idents),
    st.builds(s.RequireDecl, st.just(AT), expressions, idents, strings),
    lets,
    st.builds(
        s.DefinitionDecl, st.just(AT), st.booleans(), idents, tuples(spread_expressions), expressions, tuples(ranges)
    ),
    st.builds(s.ExampleDecl, st.just(AT), strings, tuples(st.builds(s.Entry, st.just(AT), idents, values))),
    st.builds(s.GradientDecl, st.just(AT), idents, idents),
)

parameters = st.builds(s.ParameterDecl, st.just(AT), idents, tuples(idents))
returns = st.builds(s.ReturnDecl, st.just(AT), tuples(expressions, 1))
declarations = st.one_of(
    st.builds(s.ImportDecl, st.just(AT), strings),
    st.builds(
        s.FunctionDecl, st.just(AT), idents, tuples(parameters), tuples(idents, 1), maybe_docs, tuples(lets), returns
    ),
    st.builds(s.FragmentDecl, st.just(AT), idents, maybe_docs, tuples(items)),
    st.builds(s.OpDecl, st.just(AT), idents, maybe_docs, tuples(items, 0, 4)),
)
files = st.builds(s.File, st.just(SOURCE), maybe_docs, tuples(declarations))
