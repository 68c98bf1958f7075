"""Models in ONNX's format."""
