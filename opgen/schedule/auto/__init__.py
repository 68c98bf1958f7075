"""Automatic scheduler: from the structure of a loop nest to a list of primitives."""
