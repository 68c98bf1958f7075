"""Syntax of specs, from text to tree and back: grammar, parser, tree, printer, diagnostics."""
