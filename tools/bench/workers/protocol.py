"""How a worker talks: one JSON object a line, a request on stdin, its answer on stdout.

    {"do": "hello"}                                     -> {"library", "version", "variants"}
    {"do": "prepare", "variant", "case", "seed", "offset", "result"} -> {"calls", "seconds", "facts"}
        (`result`: an .npy file, or an .npz file of several results)
    {"do": "time", "variant", "samples"}                -> {"seconds": [one a sample, for one call]}
        (`"clock": "processor"`: those that the process had a processor for)
    {"do": "forget"}                                    -> {}  (drops the calls that were prepared)
    {"do": "quit"}

An answer with "error" says why there is no other.  This file needs numpy and nothing else, a worker its library too.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

LINE = 64
"""Bytes of a cache line."""
SPREAD = 100
"""The standard deviation of integers."""
DRAWN: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "positive": np.abs,
    "small": lambda x: x / 32,
    "unit": lambda x: np.clip(x / 4, -0.99, 0.99),
}
"""Transformations of normal numbers, by the word of a row's tensor."""
MESSAGE = 400
"""Most characters of an error that are passed on."""
SAMPLE_SECONDS = 0.001
"""Calls shorter than this are timed several at once, so that the clock does not weigh."""


class RefusalError(Exception):
    """The library cannot do the call, or not so that it could be compared."""


class Given:
    """The tensors of a case, float32 and NHWC: the same numbers in every worker.  Made when they are asked for."""

    def __init__(self, case: dict[str, Any], seed: int, offset: int = 0) -> None:
        self._case = case
        self.seed = seed
        self._offset = offset

    def _numbers(self, shape: list[int], number: int) -> np.ndarray:
        rng = np.random.default_rng((self.seed, number))
        return placed(rng.standard_normal(shape, dtype=np.float32), self._offset)

    def placed(self, array: np.ndarray, dtype: Any) -> np.ndarray:
        """Return an array in a type and in the order of its dimensions, where the tensors of the case begin."""
        return placed(array.astype(dtype), self._offset)

    @cached_property
    def inputs(self) -> list[np.ndarray]:
        """Return the inputs of an op other than convolution, in the order of its arguments (see `op_rows.OpRow`)."""
        return [self._drawn(text, number) for number, text in enumerate(self._case["tensors"])]

    def _drawn(self, text: str, number: int) -> np.ndarray:
        sizes, _, kind = text.partition(":")
        shape = [int(size) for size in sizes.split("x")]
        dtype, _, limit = kind.partition("<")
        if limit:
            return self.placed(np.random.default_rng((self.seed, number)).integers(0, int(limit), shape), dtype)
        found = self._numbers(shape, number)
        if kind == "bool":
            return self.placed(found > 0, kind)
        if not kind:
            return found
        if kind in DRAWN:
            return self.placed(DRAWN[kind](found), found.dtype)
        bounds = np.iinfo(kind)
        return self.placed(np.clip(np.rint(found * SPREAD), bounds.min, bounds.max), kind)

    @cached_property
    def images(self) -> np.ndarray:
        """[batch, height, width, channels]"""
        return self._numbers(self._case["input_shape"], 0)

    @cached_property
    def filter(self) -> np.ndarray:
        """[height, width, in_channels, out_channels or multiplier]"""
        return self._numbers(self._case["filter_shape"], 1)

    @cached_property
    def gradient(self) -> np.ndarray:
        """Of the output: [batch, height, width, channels]"""
        return self._numbers(self._case["output_shape"], 2)


def placed(array: np.ndarray, offset: int) -> np.ndarray:
    """Return a C-contiguous copy that begins `offset` bytes after a cache line."""
    memory = np.empty(array.nbytes + 2 * LINE, np.uint8)
    begin = -memory.ctypes.data % LINE + offset
    found = memory[begin : begin + array.nbytes].view(array.dtype).reshape(array.shape)
    found[...] = array
    return found


def first(results: Any) -> np.ndarray:
    """Return the result of an op, the first of several."""
    return np.asarray(results[0] if isinstance(results, (tuple, list)) else results)


@dataclass(frozen=True)
class Call:
    """A call that is ready: `run` does it and returns the library's result once it is there.

    `read` makes of it a float32 or float64 array: images as [batch, height, width, channels], a filter as given.  A
    call that is `timed` returns its seconds instead.  For a model `read` returns all results by name.  `facts` were
    measured while the call was made ready.
    """

    run: Callable[[], Any]
    read: Callable[[Any], np.ndarray | dict[str, np.ndarray]]
    timed: bool = False
    facts: dict[str, float] = field(default_factory=dict)


class Library:
    """A worker's library: its name and version, its variants, and the function that makes a call ready."""

    name = ""
    version = ""
    variants: tuple[str, ...] = ()

    def prepare(self, variant: str, case: dict[str, Any], given: Given) -> Call:
        """Return the call of a case; any error counts as a refusal."""
        raise NotImplementedError


class Prepared:
    """A call that is ready, and how many of it make a sample."""

    def __init__(self, call: Call) -> None:
        self.run, self.timed = call.run, call.timed
        self.run()
        self.calls = 1
        while (seconds := self._sample()) * self.calls < SAMPLE_SECONDS:
            self.calls *= 2
        self.seconds = seconds

    def _sample(self, clock: Callable[[], float] = time.perf_counter) -> float:
        run = self.run
        if self.timed:
            return float(sum(run() for _ in range(self.calls))) / self.calls
        begin = clock()
        for _ in range(self.calls):
            run()
        return (clock() - begin) / self.calls

    def samples(self, count: int, clock: Callable[[], float] = time.perf_counter) -> list[float]:
        """Seconds for one call, `count` times, after as many calls as a sample has, which warm the caches again."""
        self._sample()
        return [self._sample(clock) for _ in range(count)]


def answer(library: Library, request: dict[str, Any], state: dict[str, Prepared]) -> dict[str, Any]:
    if request["do"] == "hello":
        return {"library": library.name, "version": library.version, "variants": list(library.variants)}
    if request["do"] == "forget":
        state.clear()
        return {}
    variant = str(request["variant"])
    if request["do"] == "prepare":
        case = request["case"]
        call = library.prepare(variant, case, Given(case, request["seed"], request["offset"]))
        if request["result"]:
            save(request["result"], call.read(call.run()))
        state[variant] = ready = Prepared(call)
        return {"calls": ready.calls, "seconds": ready.seconds, "facts": call.facts}
    if request["do"] == "time":
        clock = time.process_time if request.get("clock") == "processor" else time.perf_counter
        return {"seconds": state[variant].samples(request["samples"], clock)}
    return {"error": "unknown request " + repr(request["do"])}


def save(path: str, result: np.ndarray | dict[str, np.ndarray]) -> None:
    """One array, or arrays by name, to a file."""
    if isinstance(result, dict):
        with open(path, "wb") as stream:
            np.savez(stream, *result.values(), names=np.array(list(result)))
    else:
        np.save(path, result)


def peak_bytes() -> int:
    """Return the most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def in_a_line(text: str) -> str:
    """Return the lines of a message as one, not too long."""
    return " ".join(line.strip() for line in text.strip().split("\n"))[:MESSAGE]


def serve(library: Library, replies: int) -> None:
    """Answer requests on a file descriptor until one says quit or stdin ends."""
    state: dict[str, Prepared] = {}
    with os.fdopen(replies, "w", encoding="utf-8") as stream:
        for line in sys.stdin:
            request = json.loads(line)
            if request["do"] == "quit":
                return
            try:
                reply = answer(library, request, state)
            except Exception as error:  # a refusal of the library is a result of the benchmark, not its end
                reply = {"error": f"{type(error).__name__}: {in_a_line(str(error))}"}
            stream.write(json.dumps(reply) + "\n")
            stream.flush()


def same_padding(case: dict[str, Any]) -> tuple[tuple[int, int], tuple[int, int]]:
    """(before, after) of the two axes of an image."""
    if case["padding"] == "VALID":
        return (0, 0), (0, 0)
    return _same(case["in_height"], case["filter_height"], case["stride"]), _same(
        case["in_width"], case["filter_width"], case["stride"]
    )


def _same(size: int, taps: int, stride: int) -> tuple[int, int]:
    total = max(0, (-(-size // stride) - 1) * stride + taps - size)
    return total // 2, total - total // 2


def grouped(case: dict[str, Any], weights: np.ndarray) -> tuple[np.ndarray, int]:
    """Return the filter in grouped form, [height, width, channels of a group, out], and the number of groups."""
    if case["kind"] == "dense":
        return weights, int(case.get("groups", 1))
    return weights.reshape(*weights.shape[:2], 1, case["out_channels"]), int(case["in_channels"])
