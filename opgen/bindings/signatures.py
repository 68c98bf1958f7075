"""The signatures of an op as its documentation has them: a label and the call."""

from __future__ import annotations

from collections.abc import Iterator

from opgen.spec.model.model import Elements, InPlace, OpSpec, SignatureArgument


def calls(op: OpSpec) -> Iterator[tuple[str, str]]:
    """Yield the label of each signature, and its call; nothing for an op that has one."""
    for signature in op.signatures:
        function = signature.function or op.function_name
        yield signature.label, f"{function}({', '.join(_argument(op, a) for a in signature.arguments)})"


def form_notes(op: OpSpec, name: str) -> str:
    """Return the other forms of an argument, and the signatures that have them; empty if it has one form."""
    by_form: dict[Elements | InPlace, list[str]] = {}
    for signature in op.signatures:
        for argument in signature.arguments:
            if argument.name == name and argument.form is not None:
                by_form.setdefault(argument.form, []).append(signature.label)
    return "".join(f" {_form_note(op, form, ' and '.join(labels))}" for form, labels in by_form.items())


def _form_note(op: OpSpec, form: Elements | InPlace, labels: str) -> str:
    if isinstance(form, Elements):
        dims = " and ".join(form.letters)
        each = f", or a list of {len(form.letters)}, one for each" if len(form.letters) > 1 else ""
        return f"In {labels} also one integer for {dims}{each}; the other elements are {form.fill}."
    shape = op.attr(form.payload).shape
    listed = f"{shape[0]} lists of {shape[1]}" if len(shape) > 1 else f"a list of {shape[0]}"
    return f"In {labels} also {listed} integers in place of {form.word} and `{form.payload}`."


def other_names(op: OpSpec) -> dict[str, str]:
    """Return other names that callers may write instead of the op's, each with the argument that it means."""
    pairs = [(c, a.name) for s in op.signatures for a in s.arguments for c in a.called]
    return {called: name for called, name in pairs if called != name}


def other_functions(op: OpSpec) -> tuple[str, ...]:
    """Return the other names of the op's function."""
    return tuple(dict.fromkeys(s.function for s in op.signatures if s.function))


def _argument(op: OpSpec, argument: SignatureArgument) -> str:
    name = " or ".join(argument.called)
    attr = next((a for a in op.attrs if argument.name in (a.name, a.alias)), None)
    if attr is None:
        return name if any(i.name == argument.name for i in op.inputs) else f"{name}=None"
    if argument.name == attr.alias:
        return f"{name}=None"
    if argument.default is not None:
        return f"{name}={_shown(argument.default)}"
    return f"{name}={_shown(attr.default)}" if attr.has_default else name


def _shown(value: object) -> str:
    """Return a default as Python writes it."""
    if isinstance(value, tuple):
        return f"[{', '.join(map(_shown, value))}]"
    return f'"{value}"' if isinstance(value, str) else repr(value)
