"""The text of a schedule: one step a line, `#` begins a comment.

split x 14 tail=min -> x_o, x_i
reorder n, y, x_o, k_o, r, s, c, x_i, k_i
fuse n, y -> n_y
flatten y, x -> y_x
merge i, i_1
fission d -> d_1
skew r, y_i 1 -> r_y
own i 64 -> i_owner
unroll x_i
vectorize k_i
parallel n_y
bind x block.x
stage input at=y space=stack pad=true -> input_local
compute_at weight at=y space=heap again=false
pack filter 0, 1, 3, 2 -> filter_packed
pack filter 0, 1, 3, 2 at=k_o -> panel
pack input 0, 3, 1, 2 in=x_o -> transposed
pad input 1, 2 -> input_padded
permute sums 2, 0, 1
pitch sums 1 65
ring states 0 2
tabulate scale n, c -> scale_table
transpose k_i, c_i
tensorize x_i, k_i, c_i -> tiles
prefix t 16 -> running
relay t 4096 -> t_o, before
regroup y_i, x_o
separate s -> first
carry r at=k_o
divide n_p at=k_o -> sums
share j 32 at=i space=heap -> part
prefetch input at=y_o in=x
fill panel in=x
stream output
partition x_o 1, -1
partition x_o -1 -> rest
tighten r
version n out_width >= 8 and left == 1 -> wide
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from opgen.diagnostics import DiagnosticError, Source, Span, did_you_mean
from opgen.loop.nodes import INDEX, LoopKind, Space
from opgen.schedule import steps
from opgen.schedule.errors import ScheduleError
from opgen.schedule.split import TAILS, Tail

_TOKEN = re.compile(r"->|[,=]|-?\d+|[A-Za-z_][\w.]*|\S")
_NAME = re.compile(r"[A-Za-z_][\w.]*")
_NUMBER = re.compile(r"-?\d+")
_VERSION = re.compile(r"\s*version\s+([A-Za-z_]\w*)\s+(\S[^#]*?)\s*->\s*([A-Za-z_]\w*)\s*(?:#.*)?$")
DIGITS = 9
"""Most digits of a number: a product of two is far from the end of 64 bits."""
LINE = 4096
"""Most characters of a line."""
STEPS = 500
"""Most steps of a schedule: ten times what the automatic scheduler takes."""
SPACES: tuple[Space, ...] = ("heap", "stack", "register")
TRUTHS = ("true", "false")


@dataclass(frozen=True)
class Word:
    text: str
    span: Span


@dataclass
class Line:
    """A step taken apart: its command, arguments, `name=value` options, and names after the arrow."""

    command: Word
    arguments: list[Word] = field(default_factory=list)
    options: dict[str, Word] = field(default_factory=dict)
    results: list[Word] = field(default_factory=list)


def parse_steps(text: str, name: str = "<schedule>") -> tuple[steps.Step, ...]:
    """The steps of a text; refuses with the place of the first mistake."""
    source = Source(name, text)
    result: list[steps.Step] = []
    for number, row in enumerate(text.split("\n"), start=1):
        if len(row) > LINE:
            place = Span(source, number, LINE + 1, number, LINE + 2)
            raise ScheduleError(f"a line has more than {LINE} characters", span=place)
        words = _words(source, number, row)
        if words and len(result) == STEPS:
            raise ScheduleError(f"a schedule has more than {STEPS} steps", span=words[0].span)
        if words:
            result.append(replace(_step(source, number, row, words), span=words[0].span))
    return tuple(result)


def _step(source: Source, number: int, row: str, words: Sequence[Word]) -> steps.Step:
    if words[0].text == "version":
        return _version(source, number, row, words[0])
    line = _line(words)
    return _reader(line.command)(line)


def _words(source: Source, number: int, row: str) -> list[Word]:
    code = row.split("#", 1)[0]
    found = _TOKEN.finditer(code)
    return [Word(m.group(), Span(source, number, m.start() + 1, number, m.end() + 1)) for m in found]


def _line(words: Sequence[Word]) -> Line:
    line, at, target = Line(words[0]), 1, None
    while at < len(words):
        word = words[at]
        if word.text == "->":
            target = line.results
        elif word.text == ",":
            pass
        elif at + 2 < len(words) and words[at + 1].text == "=":
            line.options[word.text] = words[at + 2]
            at += 2
        elif _NAME.fullmatch(word.text) or _NUMBER.fullmatch(word.text):
            (line.arguments if target is None else target).append(word)
        else:
            raise ScheduleError(f"'{word.text}' is not expected here", span=word.span)
        at += 1
    return line


def _reader(command: Word) -> Callable[[Line], steps.Step]:
    reader = _READERS.get(command.text)
    if reader is None:
        known = COMMANDS
        hint = did_you_mean(command.text, known) or f"the steps are {', '.join(known)}"
        raise ScheduleError(f"there is no step '{command.text}'", hint, command.span)
    return reader


def _shape(line: Line, usage: str, arguments: int, options: Sequence[str] = (), results: int = 0) -> None:
    """Refuse a step with the wrong number of parts; `usage` says how it is written."""
    for name, word in line.options.items():
        if name not in options:
            raise ScheduleError(f"{line.command.text} has no option '{name}'", f"write {usage}", word.span)
    if len(line.arguments) != arguments or len(line.results) not in (0, results):
        raise ScheduleError(
            f"{line.command.text} is not complete, or has too much", f"write {usage}", line.command.span
        )
    for word in line.results:
        if not (word.text.isascii() and word.text.isidentifier()):
            raise ScheduleError(f"'{word.text}' is no name", span=word.span)


def _integer(word: Word) -> int:
    if not _NUMBER.fullmatch(word.text):
        raise ScheduleError(f"'{word.text}' is not an integer", span=word.span)
    if len(word.text.lstrip("-")) > DIGITS:
        raise ScheduleError(f"'{word.text}' is too large", f"a number has up to {DIGITS} digits", word.span)
    return int(word.text)


def _choice(word: Word | None, default: str, known: Sequence[str], what: str) -> str:
    if word is None:
        return default
    if word.text not in known:
        hint = did_you_mean(word.text, known) or f"it is one of {', '.join(known)}"
        raise ScheduleError(f"there is no {what} '{word.text}'", hint, word.span)
    return word.text


def _names(line: Line, *defaults: str) -> tuple[str, ...]:
    return tuple(w.text for w in line.results) if line.results else defaults


def _split(line: Line) -> steps.Step:
    _shape(line, "split LOOP FACTOR tail=TAIL -> OUTER, INNER", 2, ["tail"], 2)
    loop, tail = line.arguments[0].text, _choice(line.options.get("tail"), "guard", TAILS, "tail")
    outer, inner = _names(line, f"{loop}_o", f"{loop}_i")
    return steps.Split(loop, _integer(line.arguments[1]), cast(Tail, tail), outer, inner)


def _reorder(line: Line) -> steps.Step:
    _shape(line, "reorder LOOP, LOOP, ...", max(2, len(line.arguments)))
    return steps.Reorder(tuple(w.text for w in line.arguments))


def _fuse(line: Line) -> steps.Step:
    _shape(line, "fuse OUTER, INNER -> NAME", 2, results=1)
    outer, inner = (w.text for w in line.arguments)
    return steps.Fuse(outer, inner, _names(line, f"{outer}_{inner}")[0])


def _flatten(line: Line) -> steps.Step:
    _shape(line, "flatten OUTER, INNER -> NAME", 2, results=1)
    outer, inner = (w.text for w in line.arguments)
    return steps.Flatten(outer, inner, _names(line, f"{outer}_{inner}")[0])


def _merge(line: Line) -> steps.Step:
    _shape(line, "merge FIRST, SECOND", 2)
    first, second = (w.text for w in line.arguments)
    return steps.Merge(first, second)


def _fission(line: Line) -> steps.Step:
    _shape(line, "fission LOOP -> NAME, NAME", 1, results=len(line.results))
    return steps.Fission(line.arguments[0].text, tuple(w.text for w in line.results))


def _skew(line: Line) -> steps.Step:
    _shape(line, "skew OUTER, INNER FACTOR -> NAME", 3, results=1)
    outer, inner = (w.text for w in line.arguments[:2])
    factor = _integer(line.arguments[2])
    return steps.Skew(outer, inner, factor, _names(line, f"{outer}_{inner}")[0])


def _transpose(line: Line) -> steps.Step:
    _shape(line, "transpose OUTER, INNER", 2)
    outer, inner = (w.text for w in line.arguments)
    return steps.Transpose(outer, inner)


def _one(make: Callable[[str], steps.Step]) -> Callable[[Line], steps.Step]:
    def read(line: Line) -> steps.Step:
        _shape(line, f"{line.command.text} LOOP", 1)
        return make(line.arguments[0].text)

    return read


def _bind(line: Line) -> steps.Step:
    _shape(line, "bind LOOP AXIS", 2)
    return steps.Bind(line.arguments[0].text, cast(LoopKind, line.arguments[1].text))


def _stage(line: Line) -> steps.Step:
    usage = "stage BUFFER at=LOOP space=SPACE pad=true -> NAME"
    _shape(line, usage, 1, ["at", "space", "pad"], 1)
    if "at" not in line.options:
        raise ScheduleError("stage needs the loop at which to make the copy", f"write {usage}", line.command.span)
    space = _choice(line.options.get("space"), "stack", SPACES, "space")
    pad = _choice(line.options.get("pad"), "false", TRUTHS, "truth value")
    buffer = line.arguments[0].text
    (name,) = _names(line, f"{buffer}_local")
    at = line.options["at"].text
    return steps.Stage(buffer, at, cast(Space, space), pad == "true", name)


def _compute_at(line: Line) -> steps.Step:
    usage = "compute_at BUFFER at=LOOP space=SPACE again=true"
    _shape(line, usage, 1, ["at", "space", "again"])
    if "at" not in line.options:
        raise ScheduleError("compute_at needs the loop to compute it in", f"write {usage}", line.command.span)
    space = _choice(line.options.get("space"), "heap", SPACES, "space")
    again = _choice(line.options.get("again"), "false", TRUTHS, "truth value")
    buffer, at = line.arguments[0].text, line.options["at"].text
    return steps.ComputeAt(buffer, at, cast(Space, space), again == "true")


def _pack(line: Line) -> steps.Step:
    usage = "pack BUFFER DIMENSION, DIMENSION, ... at=LOOP in=LOOP -> NAME"
    _shape(line, usage, max(2, len(line.arguments)), ["at", "in"], 1)
    buffer = line.arguments[0].text
    order = tuple(_integer(w) for w in line.arguments[1:])
    at, loop = (line.options[n].text if n in line.options else None for n in ("at", "in"))
    return steps.Pack(buffer, order, _names(line, f"{buffer}_packed")[0], at, loop)


def _pad(line: Line) -> steps.Step:
    _shape(line, "pad BUFFER DIMENSION, DIMENSION, ... -> NAME", max(2, len(line.arguments)), results=1)
    buffer = line.arguments[0].text
    dimensions = tuple(_integer(w) for w in line.arguments[1:])
    return steps.Pad(buffer, dimensions, _names(line, f"{buffer}_padded")[0])


def _permute(line: Line) -> steps.Step:
    _shape(line, "permute BUFFER DIMENSION, DIMENSION, ...", max(2, len(line.arguments)))
    order = tuple(_integer(w) for w in line.arguments[1:])
    return steps.Permute(line.arguments[0].text, order)


def _pitch(line: Line) -> steps.Step:
    _shape(line, "pitch BUFFER DIMENSION SIZE", 3)
    buffer, dimension, size = line.arguments
    return steps.Pitch(buffer.text, _integer(dimension), _integer(size))


def _ring(line: Line) -> steps.Step:
    _shape(line, "ring BUFFER DIMENSION ROWS", 3)
    buffer, dimension, rows = line.arguments
    return steps.Ring(buffer.text, _integer(dimension), _integer(rows))


def _tabulate(line: Line) -> steps.Step:
    usage = "tabulate BUFFER LOOP, LOOP join=true -> NAME"
    _shape(line, usage, max(2, len(line.arguments)), ["join"], results=1)
    buffer, *loops = (w.text for w in line.arguments)
    name = line.results[0].text if line.results else f"{buffer}_table"
    join = _choice(line.options.get("join"), "false", TRUTHS, "truth value")
    return steps.Tabulate(buffer, tuple(loops), name, join == "true")


def _widen(line: Line) -> steps.Step:
    _shape(line, "widen BUFFER -> NAME", 1, results=1)
    buffer = line.arguments[0].text
    return steps.Widen(buffer, _names(line, f"{buffer}_wide")[0])


def _recode(line: Line) -> steps.Step:
    _shape(line, "recode BUFFER -> NAME", 1, results=1)
    buffer = line.arguments[0].text
    return steps.Recode(buffer, _names(line, f"{buffer}_recoded")[0])


def _distribute(line: Line) -> steps.Step:
    _shape(line, "distribute LOOP -> FIRST, SECOND", 1, results=2)
    loop = line.arguments[0].text
    first, second = _names(line, f"{loop}_left_sums", f"{loop}_right_sums")
    return steps.Distribute(loop, first, second)


def _pair(line: Line) -> steps.Step:
    _shape(line, "pair LOOP -> FIRST, SECOND", 1, results=2)
    loop = line.arguments[0].text
    first, second = _names(line, f"{loop}_left", f"{loop}_right")
    return steps.Pair(loop, first, second)


def _tensorize(line: Line) -> steps.Step:
    _shape(line, "tensorize ROWS, COLUMNS, DEPTH -> NAME", 3, results=1)
    rows, columns, depth = (w.text for w in line.arguments)
    return steps.Tensorize(rows, columns, depth, _names(line, "tiles")[0])


def _rfactor(line: Line) -> steps.Step:
    _shape(line, "rfactor LOOP FACTOR -> PARTIAL", 2, results=1)
    loop = line.arguments[0].text
    (partial,) = _names(line, f"{loop}_partial")
    return steps.Rfactor(loop, _integer(line.arguments[1]), partial)


def _prefix(line: Line) -> steps.Step:
    _shape(line, "prefix LOOP LANES -> NAME", 2, results=1)
    loop = line.arguments[0].text
    return steps.Prefix(loop, _integer(line.arguments[1]), _names(line, f"{loop}_prefix")[0])


def _relay(line: Line) -> steps.Step:
    _shape(line, "relay LOOP SIZE -> OUTER, SUMS", 2, results=2)
    loop = line.arguments[0].text
    outer, sums = _names(line, f"{loop}_o", f"{loop}_sums")
    return steps.Relay(loop, _integer(line.arguments[1]), outer, sums)


def _own(line: Line) -> steps.Step:
    _shape(line, "own LOOP OWNERS -> NAME", 2, results=1)
    loop = line.arguments[0].text
    return steps.Own(loop, _integer(line.arguments[1]), _names(line, f"{loop}_owner")[0])


def _share(line: Line) -> steps.Step:
    _shape(line, "share LOOP COUNT at=LOOP space=SPACE -> PART", 2, ["at", "space"], results=1)
    loop, at = line.arguments[0].text, line.options.get("at")
    space = _choice(line.options.get("space"), "heap", ("heap", "shared"), "space")
    part = _names(line, f"{loop}_part")[0]
    count = _integer(line.arguments[1])
    return steps.Share(loop, count, part, None if at is None else at.text, cast(Space, space))


def _regroup(line: Line) -> steps.Step:
    _shape(line, "regroup LOOP, INSIDE", 2)
    loop, inside = (w.text for w in line.arguments)
    return steps.Regroup(loop, inside)


def _separate(line: Line) -> steps.Step:
    _shape(line, "separate LOOP -> FIRST", 1, results=1)
    loop = line.arguments[0].text
    return steps.Separate(loop, _names(line, f"{loop}_first")[0])


def _carry(line: Line) -> steps.Step:
    _shape(line, "carry LOOP at=LOOP", 1, ["at"])
    if "at" not in line.options:
        raise ScheduleError("carry needs the loop outside which to go", "write carry LOOP at=LOOP", line.command.span)
    return steps.Carry(line.arguments[0].text, line.options["at"].text)


def _divide(line: Line) -> steps.Step:
    usage = "divide LOOP at=LOOP space=SPACE -> SUMS"
    _shape(line, usage, 1, ["at", "space"], results=1)
    if "at" not in line.options:
        raise ScheduleError("divide needs the loop outside which to go", f"write {usage}", line.command.span)
    space = _choice(line.options.get("space"), "heap", SPACES, "space")
    loop, at = line.arguments[0].text, line.options["at"].text
    return steps.Divide(loop, at, _names(line, f"{loop}_sums")[0], cast(Space, space))


def _prefetch(line: Line) -> steps.Step:
    usage = "prefetch BUFFER at=LOOP in=LOOP"
    _shape(line, usage, 1, ["at", "in"])
    if len(line.options) < 2:
        raise ScheduleError("prefetch needs an outer and an inner loop", f"write {usage}", line.command.span)
    at, loop = line.options["at"].text, line.options["in"].text
    return steps.Prefetch(line.arguments[0].text, at, loop)


def _fill(line: Line) -> steps.Step:
    usage = "fill BUFFER in=LOOP"
    _shape(line, usage, 1, ["in"])
    if "in" not in line.options:
        raise ScheduleError("fill needs a loop", f"write {usage}", line.command.span)
    return steps.Fill(line.arguments[0].text, line.options["in"].text)


def _stream(line: Line) -> steps.Step:
    _shape(line, "stream OUTPUT", 1)
    return steps.Stream(line.arguments[0].text)


def _partition(line: Line) -> steps.Step:
    _shape(line, "partition LOOP CUT, CUT -> SUFFIX", max(2, len(line.arguments)), results=1)
    cuts = tuple(_integer(w) for w in line.arguments[1:])
    suffix = line.results[0].text if line.results else None
    return steps.Partition(line.arguments[0].text, cuts, suffix)


def _version(source: Source, number: int, row: str, command: Word) -> steps.Step:
    """A version's condition is an expression of loop IR over parameters."""
    from opgen.loop.parse import parse_expr  # brings the parser's tables, which nothing else here needs

    match = _VERSION.match(row)
    if match is None:
        raise ScheduleError("version is not complete", "write version LOOP CONDITION -> SUFFIX", command.span)
    loop, text, suffix = match.groups()
    try:
        condition = parse_expr(text, dict.fromkeys(_NAME.findall(text), INDEX))
    except DiagnosticError as error:
        place = Span(source, number, match.start(2) + 1, number, match.end(2) + 1)
        raise ScheduleError(f"'{text}' is not a condition: {error.diagnostics[0].message}", span=place) from None
    return steps.Version(loop, condition, suffix)


_READERS: dict[str, Callable[[Line], steps.Step]] = {
    "split": _split,
    "reorder": _reorder,
    "fuse": _fuse,
    "flatten": _flatten,
    "merge": _merge,
    "fission": _fission,
    "skew": _skew,
    "own": _own,
    "unroll": _one(steps.Unroll),
    "vectorize": _one(steps.Vectorize),
    "parallel": _one(steps.Parallel),
    "bind": _bind,
    "stage": _stage,
    "compute_at": _compute_at,
    "pack": _pack,
    "pad": _pad,
    "permute": _permute,
    "pitch": _pitch,
    "ring": _ring,
    "tabulate": _tabulate,
    "widen": _widen,
    "transpose": _transpose,
    "recode": _recode,
    "distribute": _distribute,
    "pair": _pair,
    "tensorize": _tensorize,
    "rfactor": _rfactor,
    "prefix": _prefix,
    "relay": _relay,
    "regroup": _regroup,
    "separate": _separate,
    "carry": _carry,
    "divide": _divide,
    "share": _share,
    "prefetch": _prefetch,
    "fill": _fill,
    "stream": _stream,
    "partition": _partition,
    "tighten": _one(steps.Tighten),
}
COMMANDS = (*_READERS, "version")
"""The words that steps begin with."""
