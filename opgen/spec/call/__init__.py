"""Evaluation of one concrete call: attribute values, sizes and shapes."""
