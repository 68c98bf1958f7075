"""The checker of one op: interface, attributes, signatures, gradients, algorithms, examples."""
