"""Programs that run one library each, in that library's own interpreter, and answer on a pipe (`protocol`)."""
