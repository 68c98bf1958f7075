"""Nests that feed each other through memory."""
