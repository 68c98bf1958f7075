"""The codes of the diagnostics that a spec can draw, and what each stands for."""

from __future__ import annotations

CODES = {
    "S001": "the text does not follow the grammar",
    "S002": "a file cannot be read or imported",
    "S003": "the text nests too deeply",
    "S004": "a string or number that stands for nothing",
    "S005": "more than a spec may hold",
    "S010": "a name that no language could use as it is",
    "S011": "a name declared twice",
    "S012": "a name that is not known",
    "S013": "a name of the wrong sort for where it stands",
    "S020": "a wrong type",
    "S021": "a wrong number of arguments, results or subscripts",
    "S022": "a call that leads back to itself",
    "S023": "a name used before it is defined",
    "S030": "an attribute declared wrongly",
    "S031": "a default that is not a legal value",
    "S032": "a layout that does not fit",
    "S033": "an attribute, input or index without effect",
    "S034": "a signature that does not fit the arguments",
    "S040": "a dimension or a type that the inputs do not determine",
    "S041": "a dimension of the wrong form",
    "S050": "an index whose range cannot be told, or is told twice",
    "S051": "a subscript that does not cover its dimension exactly once",
    "S052": "a read that may fall outside its tensor",
    "S053": "an output without mathematics, or with too much",
    "S054": "a constant whose numbers do not fit its shape",
    "S055": "a read along a dimension of which nothing tells how far it stretches",
    "S060": "a gradient that does not fit its op",
    "S061": "an example that does not fit its op",
    "S062": "mathematics that cannot be differentiated",
    "S063": "an algorithm that does not fit its op",
    "S064": "a specialization that does not fit its op",
    "S065": "a pack, a list or another thing of generic ops where it cannot be expanded",
    "S066": "versions that do not fit each other",
}


def known(code: str) -> str:
    """The code itself; a code that is not in the table is a bug."""
    if code not in CODES:
        raise KeyError(code)
    return code
