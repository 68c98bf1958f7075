"""Calls from many threads, arrays that change meanwhile, and forks."""

from __future__ import annotations

import os
import random
import threading

import numpy as np

from opgen.runtime.threads import set_num_threads
from tests.verification.attack.finding import FoundError, Target, is_typed
from tests.verification.attack.targets.ops import Call, module, right_call

ROUNDS = 30


class Races(Target):
    """Threads that call while arrays, results and the number of threads change; forks between and within calls."""

    name = "races"
    batch = 20
    seconds = 60.0
    memory = 0

    def prepare(self) -> None:
        self.module = module(self.folder)

    def attempt(self, choose: random.Random) -> None:
        call = right_call(choose, 24)
        expected = self._bytes(call)
        stop, wrong = threading.Event(), list[str]()
        threads = [threading.Thread(target=self._same, args=(call, expected, stop, wrong)) for _ in range(3)]
        threads += [threading.Thread(target=self._other, args=(random.Random(choose.random()), stop, wrong))]
        threads += [threading.Thread(target=self._changing, args=(call, stop, wrong))]
        for thread in threads:
            thread.start()
        for _ in range(choose.randint(1, 3)):
            if choose.random() < 0.5:
                set_num_threads(choose.randint(1, 4))
            self._fork(call, expected, wrong)
        stop.set()
        for thread in threads:
            thread.join()
        if wrong:
            raise FoundError(wrong[0], str(call))

    def _bytes(self, call: Call) -> bytes:
        found = getattr(self.module, call.op)(**call.arguments)
        return b"".join(np.asarray(r).tobytes() for r in (found if isinstance(found, tuple) else (found,)))

    def _same(self, call: Call, expected: bytes, stop: threading.Event, wrong: list[str]) -> None:
        """The same call gives the same, whatever others do."""
        rounds = 0
        while rounds < ROUNDS or not stop.is_set():
            rounds += 1
            try:
                if self._bytes(call) != expected:
                    wrong.append(f"{call.op}: another result beside other calls")
                    return
            except Exception as error:
                wrong.append(f"{call.op}: {type(error).__name__}: {error}")
                return

    def _other(self, choose: random.Random, stop: threading.Event, wrong: list[str]) -> None:
        """Other calls build other kernels meanwhile."""
        while not stop.is_set():
            self._bytes(right_call(choose, 6))

    def _changing(self, call: Call, stop: threading.Event, wrong: list[str]) -> None:
        """Arrays whose values and shape change while they are read: anything typed may come of it."""
        arguments = {n: v.copy() if isinstance(v, np.ndarray) else v for n, v in call.arguments.items()}
        arrays = [v for v in arguments.values() if isinstance(v, np.ndarray) and v.size]

        def change() -> None:
            while not stop.is_set():
                for array in arrays:
                    array += np.ones((), array.dtype)
                    array.shape = (*array.shape, 1)
                    array.shape = array.shape[:-1]

        changer = threading.Thread(target=change)
        changer.start()
        while not stop.is_set():
            try:
                getattr(self.module, call.op)(**arguments)
            except Exception as error:
                if not is_typed(error):
                    wrong.append(f"{call.op}: {type(error).__name__}: {error} (its arrays change)")
                    break
        changer.join()

    def _fork(self, call: Call, expected: bytes, wrong: list[str]) -> None:
        """A child makes the call, too."""
        child = os.fork()
        if child == 0:
            code = 1
            try:
                code = 0 if self._bytes(call) == expected else 2
            finally:
                os._exit(code)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if status:
            wrong.append(f"{call.op}: a forked child ended with {status}")
