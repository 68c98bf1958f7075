"""Malformed calls of generated functions."""

from __future__ import annotations

import random
import warnings
from typing import Any

import numpy as np

from tests.verification.attack.finding import FoundError, Target, described, is_typed
from tests.verification.attack.targets.crafted import BoomError, crafted
from tests.verification.attack.targets.ops import TYPES, Array, module, right_call


class Calls(Target):
    """Malformed calls of generated Python functions: types, shapes, attributes, crafted objects."""

    name = "calls"
    batch = 2000
    seconds = 20.0
    memory = 2 << 30

    def prepare(self) -> None:
        self.module = module(self.folder)

    def attempt(self, choose: random.Random) -> None:
        call = right_call(choose)
        arguments, wrong = dict(call.arguments), False
        for _ in range(choose.choice((0, 1, 1, 2))):
            name = choose.choice([*arguments, "out", "name", "nothing"])
            if choose.random() < 0.5 and isinstance(arguments.get(name), np.ndarray):
                arguments[name] = reshaped(arguments[name], choose)
            else:
                arguments[name] = crafted(choose)
            wrong = True
        if wrong and choose.random() < 0.1:
            del arguments[choose.choice([*arguments])]
        call.arguments = arguments
        text = str(call)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = getattr(self.module, call.op)(**arguments)
        except (BoomError, TypeError) as error:
            if isinstance(error, BoomError) or is_typed(error) or is_pythons(error, call.op):
                return
            raise FoundError(described(error), text) from error
        except Exception as error:
            if not wrong or not is_typed(error):
                raise FoundError(described(error), text) from error
            return
        for result in found if isinstance(found, tuple) else (found,):
            np.asarray(result).sum()


def is_pythons(error: Exception, function: str) -> bool:
    """Whether it is what Python says of a name that a function does not have, or lacks."""
    return isinstance(error, TypeError) and str(error).startswith(f"{function}() ")


def reshaped(array: Array, choose: random.Random) -> Any:
    """The array in another type, order, number of dimensions or size, or read-only."""
    match choose.randrange(8):
        case 0:
            return array.astype(choose.choice([*TYPES.values()])) if array.dtype.kind in "fi" else array
        case 1:
            return array.T
        case 2:
            return array[..., None]
        case 3:
            return array.reshape(-1)
        case 4:
            return np.concatenate([array, array])
        case 5:
            return array.tolist()
        case 6:
            array.flags.writeable = False
            return array
    return np.asfortranarray(array)[..., ::-1]
