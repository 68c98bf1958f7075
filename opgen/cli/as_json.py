"""JSON values that commands print with `--json`: one on stdout, with keys that stay."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from opgen.diagnostics import Diagnostic

if TYPE_CHECKING:
    from opgen.cli.arguments import Arguments
    from opgen.compiler.artifact import Artifact
    from opgen.diagnostics.codes.code import Code
    from opgen.spec.model.model import Algorithm, Module, OpSpec

JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")


def print_json(value: object) -> None:
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def diagnostic(found: Diagnostic) -> Mapping[str, object]:
    """Return a mistake with its place (null where there is none): lines and columns from 1, the end exclusive."""
    span = found.span
    place = {
        "file": None if span is None else span.source.name,
        "line": None if span is None else span.line,
        "column": None if span is None else span.column,
        "end_line": None if span is None else span.end_line,
        "end_column": None if span is None else span.end_column,
    }
    return {"code": found.code, "message": found.message, **place, "help": found.help}


def explained(code: Code) -> Mapping[str, object]:
    """Return a code of diagnostics as it is declared."""
    return {
        "code": code.name,
        "title": code.title,
        "explanation": code.explanation,
        "example": code.example,
        "remedy": code.remedy,
    }


def declared(path: str, module: Module) -> Mapping[str, object]:
    """Return the declarations of a spec file."""
    ops = [{"name": op.name, "function": op.function_name} for op in module.ops]
    ops += [{"name": op.name, "function": op.function_name} for op in module.generics]
    return {"file": path, "ops": ops, "functions": [*(f.name for f in module.functions), *module.formulas]}


def inspected(found: Artifact, arguments: Arguments, stage: str, text: str) -> Mapping[str, object]:
    """Return an op at a stage: the request, and the text."""
    return {
        "op": arguments.op.name,
        "stage": stage,
        "target": found.request.target.name,
        "types": dict(arguments.types),
        "shapes": dict(arguments.shapes),
        "sizes": dict(arguments.sizes),
        "attrs": dict(arguments.attrs),
        "algorithm": found.algorithm,
        "reason": found.reason,
        "text": text,
    }


def algorithm(op: OpSpec, found: Algorithm) -> Mapping[str, object]:
    """Return an algorithm of an op: the types and calls that it is for."""
    from opgen.bindings.formula import Formula

    return {
        "name": found.name,
        "optional": found.optional,
        "types": {v.name: [t.name for t in v.allowed] for v in found.type_variables},
        "condition": None if found.condition is None else Formula(op).text(found.condition),
        "doc": found.doc,
    }
