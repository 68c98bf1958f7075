"""The parts of the interpreter: memory that checks every access, and translation of loop IR to Python."""
