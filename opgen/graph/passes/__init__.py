"""Passes: small named values that turn a graph into a graph of the same meaning.  One a file."""
