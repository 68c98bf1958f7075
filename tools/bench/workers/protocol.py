"""How a worker talks: one JSON object a line, a request on stdin, its answer on stdout.

    {"do": "hello"}                                     -> {"library", "version", "variants"}
    {"do": "prepare", "variant", "case", "seed", "threads", "result"} -> {"calls"}  (the result goes to that .npy file)
    {"do": "time", "samples"}                           -> {"seconds": [one a sample, for one call]}
    {"do": "quit"}

An answer with "error" says why there is no other.  This file needs numpy and nothing else, a worker its library too.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

SAMPLE_SECONDS = 0.001
"""Calls shorter than this are timed several at once, so that the clock does not weigh."""

Run = Callable[[], Any]


class Library:
    """What a worker provides: its name and version, its variants, and how to make a call ready."""

    name = ""
    version = ""
    variants: tuple[str, ...] = ()

    def prepare(self, variant: str, case: dict[str, Any], data: np.ndarray, weights: np.ndarray, threads: int) -> Run:
        """A function without arguments that does the call and returns the library's result."""
        raise NotImplementedError

    def to_numpy(self, result: Any) -> np.ndarray:
        """The result as [batch, height, width, channels]."""
        raise NotImplementedError


def arguments(case: dict[str, Any], seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The case's images and filter: the same numbers in every worker."""
    rng = np.random.default_rng(seed)
    data = rng.standard_normal(case["input_shape"], dtype=np.float32)
    return data, rng.standard_normal(case["filter_shape"], dtype=np.float32)


class Prepared:
    """A call that is ready, and how many of it make a sample."""

    def __init__(self, run: Run) -> None:
        self.run = run
        run()
        self.calls = 1
        while self._sample() * self.calls < SAMPLE_SECONDS:
            self.calls *= 2

    def _sample(self) -> float:
        begin = time.perf_counter()
        for _ in range(self.calls):
            self.run()
        return (time.perf_counter() - begin) / self.calls

    def samples(self, count: int) -> list[float]:
        """Seconds for one call, `count` times, after one call that warms the caches again."""
        self.run()
        return [self._sample() for _ in range(count)]


def answer(library: Library, request: dict[str, Any], state: dict[str, Prepared]) -> dict[str, Any]:
    if request["do"] == "hello":
        return {"library": library.name, "version": library.version, "variants": list(library.variants)}
    if request["do"] == "prepare":
        state.clear()
        case = request["case"]
        data, weights = arguments(case, request["seed"])
        run = library.prepare(request["variant"], case, data, weights, request["threads"])
        if request["result"]:
            np.save(request["result"], library.to_numpy(run()))
        state["call"] = Prepared(run)
        return {"calls": state["call"].calls}
    if request["do"] == "time":
        return {"seconds": state["call"].samples(request["samples"])}
    return {"error": "unknown request " + repr(request["do"])}


def serve(library: Library) -> None:
    """Answers requests until told to quit or stdin ends.  What a library prints goes to stderr, not to the answers."""
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    state: dict[str, Prepared] = {}
    for line in sys.stdin:
        request = json.loads(line)
        if request["do"] == "quit":
            return
        try:
            reply = answer(library, request, state)
        except Exception as error:  # a refusal of the library is a result of the benchmark, not its end
            reply = {"error": type(error).__name__ + ": " + str(error)}
        replies.write(json.dumps(reply) + "\n")
        replies.flush()
