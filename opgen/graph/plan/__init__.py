"""Where the values of a graph lie while it runs: in the caller's memory, among the weights, or in one arena."""
