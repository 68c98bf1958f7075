"""Gradients of ONNX's operators against finite differences."""
