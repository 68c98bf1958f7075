"""Programs of models as libraries for C and C++, compiled ahead of time."""
