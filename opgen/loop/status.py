"""Return codes of a kernel's machine code."""

OK = 0
OUT_OF_MEMORY = 1
FIRST_CHECK = 2
"""If check number 0 does not hold; 3 is check number 1's, and so on."""
