"""The support matrices: every cell of an op, computed and compared (`python -m tests.verification.support_matrix`)."""
