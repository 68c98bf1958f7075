"""Ops used in ops: their definitions become intermediates of the op that uses them."""
