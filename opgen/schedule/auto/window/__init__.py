"""Reductions in which every read depends on the lanes, and neighbours share reads."""
