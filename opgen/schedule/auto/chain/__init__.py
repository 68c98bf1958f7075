"""Chains of loop nests that feed each other through memory."""
