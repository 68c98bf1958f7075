"""Reductions in which some reads do not depend on the lanes."""
