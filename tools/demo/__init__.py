"""The demonstration: generated ops on a photograph, and on results that were recorded elsewhere."""
