"""Running emitted CUDA C: on a CUDA device, or on the CPU through the emulation header."""
