"""Kinds of plans, one per file.  No kind knows another."""
