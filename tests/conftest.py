"""For all tests: a schedule that breaks is an error, where a plain one would be built for a user."""

import os

os.environ.setdefault("OPGEN_FALLBACK", "raise")
