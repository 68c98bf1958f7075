"""The shortest use of the generated module: a box filter over a small image."""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "generated"))

import nn_ops

image = np.arange(16, dtype=np.float32).reshape(1, 4, 4, 1)
box = np.full((3, 3, 1, 1), 1 / 9, np.float32)
print(nn_ops.conv2d(image, box, strides=[1, 1, 1, 1], padding="SAME")[0, :, :, 0])
