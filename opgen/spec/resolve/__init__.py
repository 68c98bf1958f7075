"""Names, types and ranges of expressions and definitions: from syntax to the resolved model."""
