"""The support matrices: every cell of an op, computed and compared (`python -m tools.support_matrix`)."""
