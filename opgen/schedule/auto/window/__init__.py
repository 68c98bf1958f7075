"""Reductions in which every read depends on the lanes, and neighbours share what they read."""
