"""The codes of diagnostics, each declared once: its title, an explanation, an example that draws it, and the remedy.

A code names what a `Diagnostic` is about: `S0xx` for specs, `loop-...` for listings of loop IR, `schedule` and
`graph-syntax` for the texts of schedules and graphs.  `opgen explain CODE` prints one, `specs/ERRORS.md` has all.
"""

from __future__ import annotations

from opgen.diagnostics.codes.listings import LISTINGS
from opgen.diagnostics.codes.meaning import MEANING
from opgen.diagnostics.codes.names import NAMES

CODES = {code.name: code for code in (*NAMES, *MEANING, *LISTINGS)}
"""Every code by its name, in the order of the page."""
