"""Placement of a graph's values while it runs: in the caller's memory, among the weights, or in one arena."""
