"""The tags of documentation comments: parameters and results, where a template does not describe them.

A parameter of a name means the same in all classes of the API, so its text is here once.
"""

from __future__ import annotations

import re

from opgen.bindings.java.text import wrapped
from opgen.diagnostics import InternalError

_TEXT = 110
_PARAMETERS = {
    "array": "the elements",
    "begin": "the first dimension",
    "buffer": "the elements in row-major order",
    "builder": "the builder of the operation",
    "c": "the class",
    "cause": "what was behind it",
    "childScopeName": "the name of the scope within this one",
    "consumer": "what is done with each part",
    "coordinates": "the place, a coordinate for each dimension",
    "data": "the elements",
    "dataInit": "sets the elements",
    "dataInitializer": "sets the elements",
    "defaultName": "the name if the scope has none",
    "dim": "a size",
    "dimensionIdx": "the last dimension that tells a part",
    "dst": "where the copies go",
    "dtype": "the class of the tensor",
    "end": "the dimension after the last",
    "env": "where operations are built",
    "firstDimension": "the size of the dimension",
    "firstDimensionSize": "the size of the first dimension",
    "g": "the graph",
    "i": "the dimension",
    "idx": "the place among them",
    "index": "the place",
    "input": "a result of an operation",
    "inputs": "results of operations",
    "key": "the name",
    "lastDimension": "the size of the dimension",
    "length": "how many",
    "makeCopy": "whether the array is copied",
    "message": "what is said",
    "n": "how many",
    "name": "the name",
    "ndArray": "the elements",
    "number": "the number",
    "obj": "the element, or a nested array",
    "object": "the element, or a nested array",
    "offset": "where it begins in the array",
    "op": "the operation",
    "opName": "the name",
    "operand": "the result",
    "operation": "the operation, or its name",
    "option": "what was given",
    "options": "what else may be said",
    "other": "what it is compared or joined with",
    "otherDim": "a size",
    "otherDimensionSizes": "the sizes of the others",
    "output": "the name of the result",
    "rawData": "the bytes",
    "readOnly": "whether elements cannot be set",
    "requiredType": "the op",
    "scope": "where the call is built",
    "shape": "the sizes",
    "size": "how many",
    "src": "where the elements come from",
    "t": "the tensor",
    "tensor": "the elements",
    "toMatch": "the operand whose type is taken",
    "type": "the type, or the op",
    "value": "the value",
    "values": "the elements",
    "<T>": "the type of the tensor",
    "<U>": "the type that is expected",
    "<O>": "the class of what was given",
}
_THIS = ("Accepted", "Adds", "Copies", "Runs", "Sets", "Wants", "What may", "A tensor in place", "Gives")
"""First words of the comments of methods that return the object itself."""

_COMMENT = re.compile(
    r"^(?P<margin> *)/\*\* ?(?P<text>(?:(?!\*/).)*?) ?\*/\n"
    r"(?P<annotations>(?: *@(?!Override)\w+(?:\([^\n]*\))?[^\n]*\n)*)"
    r"(?P<head> *(?:public |protected |static |default |abstract |final |synchronized )*)"
    r"(?P<generics><[^(\n]*?> )?(?P<type>[\w.<>?,\[\] ]+? )?(?P<name>\w+)"
    r"\((?P<parameters>[^{;]*?)\)(?: throws [\w, ]+)?(?= \{|;)",
    re.MULTILINE | re.DOTALL,
)


def with_tags(source: str) -> str:
    """Add parameters and results to every comment of a method in a source."""
    interface = re.search(r"^public (sealed )?interface ", source, re.MULTILINE) is not None

    def completed(found: re.Match[str]) -> str:
        if "private" in found["head"] or not (interface or re.search("public|protected", found["head"])):
            return found[0]
        lines = [line.strip().removeprefix("*").removeprefix(" ") for line in found["text"].split("\n")]
        text = "\n".join(lines).strip("\n")
        tags = "\n".join(_tags(found, text))
        if not tags:
            return found[0]
        margin = found["margin"]
        blank = "" if re.search(r"^@", text, re.MULTILINE) else "\n"
        body = "\n".join(f"{margin} * {line}".rstrip() for line in f"{text}\n{blank}{tags}".split("\n"))
        return f"{margin}/**\n{body}\n{margin} */\n" + found[0][found.end("text") - found.start() :].split("\n", 1)[1]

    return _COMMENT.sub(completed, source)


def _tags(found: re.Match[str], text: str) -> list[str]:
    tags = []
    names = [f"<{n}>" for n in re.findall(r"[<,] *(\w)\b(?= extends|,|>)", found["generics"] or "")]
    names += re.findall(r"(\w+)(?:,|$)", re.sub(r"<[^()]*?>", "", found["parameters"]).strip())
    for name in names:
        if f"@param {name} " not in text:
            if name not in _PARAMETERS:
                raise InternalError(f"what is the parameter {name} of {found['name']}?")
            tags += wrapped(f"@param {name} {_PARAMETERS[name]}", _TEXT, "    ")
    if found["type"] and found["type"].strip() != "void" and "@return" not in text:
        tags += wrapped(f"@return {_returned(text)}", _TEXT, "    ")
    return tags


def _returned(text: str) -> str:
    """Return the description of a result, by a comment whose first words name it."""
    sentence = re.split(r"[.;:](?:\s|$)|, (?:which|of which|by|see)\b", text)[0]
    if text.startswith(_THIS):
        return "this"
    return sentence if sentence[1:2] in ("", "[") else sentence[:1].lower() + sentence[1:]
