"""Analyses of loop IR: normal forms of integer expressions, bounds, independence of iterations."""
