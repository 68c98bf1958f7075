"""The C++ binding: a header over the C library, in the shape of TensorFlow's generated ops, and its package files."""
