"""Random ONNX models, compared with the reference evaluator of ONNX and with ONNX Runtime."""
