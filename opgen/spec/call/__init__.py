"""One concrete call: attribute values, sizes, and shapes worked out."""
