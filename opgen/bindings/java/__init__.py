"""The Java binding: classes in the shape of TensorFlow's, of today and of before, over the C library."""
