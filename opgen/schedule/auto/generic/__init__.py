"""Nests whose sizes are not known."""
