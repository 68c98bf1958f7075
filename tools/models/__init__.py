"""The models that opgen is shown to run: where they come from, and what they are given."""
