"""The door to compilation: one function from a request to its artifact."""

from __future__ import annotations

from opgen.compiler.artifact import Artifact
from opgen.compiler.request import Compilation


def artifact(request: Compilation) -> Artifact:
    """Return what a request becomes; each stage is made when it is first asked for."""
    return Artifact(request)
