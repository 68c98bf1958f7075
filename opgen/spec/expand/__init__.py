"""Rewrites of whole files before they are checked: formulas, calls of ops, counted sizes."""
