"""Estimated cost of a schedule on a machine: memory, execution, and the measured constants."""
