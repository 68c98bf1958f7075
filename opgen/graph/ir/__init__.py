"""The graph IR: nodes, values, text, verifier, and edits."""
