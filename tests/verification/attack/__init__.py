"""Attacks on every surface at which opgen meets what others give it (`python -m tests.verification.attack`)."""
