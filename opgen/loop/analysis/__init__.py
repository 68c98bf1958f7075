"""What can be proved about loop IR: normal forms of integer expressions, bounds, independence of iterations."""
