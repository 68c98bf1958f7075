"""Random programs: valid specs, and what they compute compared with an evaluator of the mathematics in float64."""
