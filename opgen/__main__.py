"""`python -m opgen` is the command `opgen`."""

from opgen.cli import main

main(prog_name="opgen")
