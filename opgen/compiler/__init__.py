"""From a request for a kernel to its artifact: algorithm, schedule, object code, and the key that names it."""
