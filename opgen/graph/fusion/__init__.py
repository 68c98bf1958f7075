"""Composition of ops into one: unification, access summaries, inlining."""
