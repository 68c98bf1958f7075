"""The resolved model of a spec: ops, expressions, and how to visit and rewrite them."""
