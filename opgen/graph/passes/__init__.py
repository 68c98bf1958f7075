"""Passes: small named values that make a graph of a graph and change nothing of what it means.  One a file."""
