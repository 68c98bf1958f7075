"""Compiled models and functions, as callers hold them."""
