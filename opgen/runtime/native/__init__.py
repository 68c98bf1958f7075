"""Code of the run time in LLVM IR, and the loader of object code."""
