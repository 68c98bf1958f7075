"""The C library of a spec: the header, the glue that checks calls and finds kernels, and the build."""
