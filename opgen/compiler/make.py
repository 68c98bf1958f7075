"""Entry point of compilation: one function from a request to its artifact."""

from __future__ import annotations

from opgen.compiler.artifact import Artifact
from opgen.compiler.request import Compilation


def artifact(request: Compilation) -> Artifact:
    """Return the artifact of a request; each stage is made when it is first requested."""
    return Artifact(request)
