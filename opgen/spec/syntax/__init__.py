"""Text of a spec to syntax tree and back: grammar, parser, tree, printer, diagnostics."""
