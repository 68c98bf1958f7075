"""CUDA C to PTX and device code, by NVRTC or nvcc."""
