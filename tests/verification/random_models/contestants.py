"""Runners of a model: opgen, and ONNX Runtime where it is installed."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec

import numpy as np
from onnx import ModelProto

import opgen
from opgen.diagnostics import InternalError, UserError
from tests.verification.random_models.build import Array

Feeds = Mapping[str, Array]
Results = dict[str, Array]
Run = Callable[[Feeds], Results]
ALONE = "OPGEN_WITHOUT_PEER"
"""Environment variable of a process that asks no ONNX Runtime, which some models end."""


class RefusedError(Exception):
    """A model, or a call of it, that is not taken."""


def opgen_of(model: ModelProto) -> Run:
    """Return the model compiled by opgen.  Raises RefusedError for a typed refusal; other errors are findings."""
    try:
        compiled = opgen.compile(model.SerializeToString())
    except InternalError:
        raise
    except UserError as error:
        raise RefusedError(str(error)) from error

    def run(feeds: Feeds) -> Results:
        try:
            return {k: np.asarray(v) for k, v in compiled.run(dict(feeds)).items()}
        except InternalError:
            raise
        except UserError as error:
            raise RefusedError(str(error)) from error

    return run


def has_onnxruntime() -> bool:
    return find_spec("onnxruntime") is not None


def onnxruntime_of(model: ModelProto, results: Sequence[str]) -> Run | None:
    """Return the model as an ONNX Runtime session; None where that is not installed, not asked, or refuses."""
    if not has_onnxruntime() or ALONE in os.environ:
        return None
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except Exception:  # its errors share no class
        return None

    def run(feeds: Feeds) -> Results:
        try:
            return dict(zip(results, session.run(list(results), dict(feeds)), strict=True))
        except Exception as error:  # its errors share no class
            raise RefusedError(str(error)) from error

    return run
