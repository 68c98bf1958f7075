"""A call of a generated function: its arguments, its checks, its plan and the kernel that it runs."""
