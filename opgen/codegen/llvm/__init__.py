"""Loop IR to LLVM IR, assembly and object code for CPUs: import from the modules, each loads its own dependencies."""
