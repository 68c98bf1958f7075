"""One program judged: its kernels against the loop interpreter and against the mathematics, and its gradients."""

from __future__ import annotations

import random
import re
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from opgen.compiler import toolchain, tuned
from opgen.diagnostics import DiagnosticError
from opgen.dtypes import DTYPES
from opgen.grad.gradient import gradient
from opgen.grad.load import load_text
from opgen.loop.bind import bind
from opgen.loop.interpret import interpret
from opgen.loop.nodes import Kernel
from opgen.lower import Variant, lower, structural_attrs
from opgen.passes.legalize import legalize
from opgen.passes.simplify import simplify
from opgen.runtime.kernels.run import run_kernel
from opgen.spec.call.arguments import CallError
from opgen.spec.call.shapes import Environment, evaluate, solve
from opgen.spec.model.model import Definition, Expr, Module, OpSpec, Reduce
from opgen.spec.model.walk import subexpressions
from tests.verification.random_programs.bounded import Array, Value, exact
from tests.verification.random_programs.evaluate import Evaluator, TooLarge
from tests.verification.random_programs.program import Program, numpy_type

T = TypeVar("T")

INTERPRETED = 60_000
"""Most places of all nests together that the loop interpreter runs over."""
CLOSE = 1e-8
"""How far two float64 evaluations of a derivative in one direction may be apart, relative to what it is summed from."""


@dataclass(frozen=True)
class Failure:
    """`kind` groups failures that are alike; `stage` is where: the op itself or a gradient, and which kernel."""

    kind: str
    stage: str
    detail: str


@dataclass(frozen=True)
class Verdict:
    failures: tuple[Failure, ...] = ()
    refused: str = ""
    """The diagnostic, if the program is refused."""
    compared: int = 0
    """Elements that were compared."""
    unknown: int = 0
    """Elements about which the bounds say nothing."""


@dataclass(frozen=True)
class Case:
    """An op in one call: the op of a program, or a gradient of it."""

    module: Module
    op: OpSpec
    arrays: Mapping[str, Array]
    program: Program

    @property
    def environment(self) -> Environment:
        shapes = {t.name: self.arrays[t.name].shape for t in self.op.tensors}
        return solve(self.op, self.module, shapes, {}, self.program.attrs)

    def expected(self, types: Mapping[str, str], direction: Mapping[str, Array] | None = None) -> dict[str, Value]:
        """What the mathematics give, with derivatives along `direction` if there is one."""
        tensors = {}
        for t in self.op.tensors:
            dtype = DTYPES[_scalar(types, t.dtype)].compute
            given = exact(self.arrays[t.name], dtype)
            if direction is not None and t.name in direction:
                given = replace(given, t=direction[t.name], m=np.abs(direction[t.name]))
            tensors[t.name] = given
        return Evaluator(self.environment, types, tensors).run()


def judge(program: Program, thorough: bool = False) -> Verdict:
    """The verdict on a program; `thorough`: by all its inputs' gradients and both kernels of each, else by some."""
    try:
        module = load_text(program.text, f"random_{program.seed}.op")
    except DiagnosticError as error:
        return Verdict(refused=str(error))
    except Exception as error:
        return Verdict((_exception("load", error),))
    return _Judge(program, module, thorough).verdict()


class _Judge:
    def __init__(self, program: Program, module: Module, thorough: bool) -> None:
        self.program = program
        self.module = module
        self.thorough = thorough
        self.rng = random.Random(program.seed)
        self.failures: list[Failure] = []
        self.compared = self.unknown = 0

    def verdict(self) -> Verdict:
        forward = Case(self.module, self.module.ops[0], self.program.arrays, self.program)
        refused = ""
        try:
            self._kernels(forward, "forward")
            self._gradients(forward)
        except TooLarge:
            refused = "too large"
        except (DiagnosticError, CallError) as error:
            refused = str(error)
        return Verdict(tuple(self.failures), refused, self.compared, self.unknown)

    # Kernels ------------------------------------------------------------------------------------------

    def _kernels(self, case: Case, stage: str) -> None:
        """Every kernel of a case against the mathematics."""
        expected = self._attempt(f"{stage} evaluator", lambda: case.expected(self.program.types))
        if expected is None:
            return
        made = self._attempt(f"{stage} lowering", lambda: _lowered(case))
        if made is None:
            return
        kernel, parameters, arrays = made
        integers = {p.name: parameters[p.name] for p in kernel.parameters if not p.dtype.is_float}
        if _places(case) <= INTERPRETED:
            found = self._attempt(f"{stage} interpreted", lambda: interpret(kernel, arrays, parameters))
            self._compare(case, f"{stage} interpreted", found, expected)
        both = self.thorough or self.rng.random() < 0.35
        kinds = {"special": bind(kernel, integers), **({"generic": kernel} if both else {})}
        for name, unscheduled in kinds.items():
            ran = self._attempt(f"{stage} {name}", partial(_ran, unscheduled, arrays, parameters))
            self._compare(case, f"{stage} {name}", ran, expected)

    def _compare(
        self, case: Case, stage: str, found: Mapping[str, Array] | None, expected: Mapping[str, Value]
    ) -> None:
        if found is None:
            return
        for name, want in expected.items():
            got = found[name]
            if got.shape != want.v.shape:
                self.failures.append(Failure("wrong shape", stage, f"{name}: {got.shape} for {want.v.shape}"))
                continue
            known = np.isfinite(want.e)
            right = _right(got, want) | ~known
            self.compared += int(known.sum())
            self.unknown += int((~known).sum())
            if not right.all():
                at = tuple(int(i) for i in np.argwhere(~right)[0])
                shown = f"{name}{list(at)}: {got[at]} for {want.v[at]} within {want.e[at]:.3g}"
                count = f"{int((~right).sum())} of {right.size} wrong"
                self.failures.append(Failure("wrong result", stage, f"{shown}; {count}"))

    # Gradients ----------------------------------------------------------------------------------------

    def _gradients(self, forward: Case) -> None:
        op = forward.op
        float_outputs = [o for o in op.outputs if DTYPES[_scalar(self.program.types, o.dtype)].is_float]
        names = [t.name for t in op.tensors if DTYPES[_scalar(self.program.types, t.dtype)].is_float]
        if not float_outputs or len(float_outputs) < len(op.outputs) or not names:
            return
        for name in names if self.thorough else self.rng.sample(names, 1):
            derived = self._attempt(f"gradient by {name} derivation", partial(gradient, self.module, op, name))
            if derived is None:
                continue
            arrays = dict(forward.arrays)
            for output in op.outputs:
                shape = forward.environment.output_shapes[output.name]
                dtype = _scalar(self.program.types, output.dtype)
                arrays[f"grad_{output.name}"] = self.program.cotangent(output.name, shape, dtype)
            case = Case(replace(self.module, ops=(derived,)), derived, arrays, self.program)
            self._kernels(case, "gradient")
            self._attempt("gradient evaluator", partial(self._derivative, forward, case, name))

    def _derivative(self, forward: Case, backward: Case, name: str) -> bool:
        """The derived gradient's mathematics against the derivative of the op's own along a random direction."""
        types = dict.fromkeys(self.program.types, "float64")
        rng = np.random.default_rng([self.program.seed, 7])
        direction = rng.standard_normal(forward.arrays[name].shape)
        (g,) = backward.expected(types).values()
        wanted = sizes = doubt = 0.0
        with np.errstate(all="ignore"):
            for output, value in forward.expected(types, {name: direction}).items():
                doubt += 0.0 if np.isfinite(value.e).all() else np.inf
                if value.t is not None and value.m is not None:
                    dy = backward.arrays[f"grad_{output}"].astype(np.float64)
                    wanted += float((dy * value.t).sum())
                    sizes += float((np.abs(dy) * value.m).sum())
            got = float((g.v * direction).sum())
            far = CLOSE * (sizes + float(np.abs(g.v * direction).sum())) + float((g.e * np.abs(direction)).sum())
        if not np.isfinite(wanted) or not np.isfinite(doubt) or not np.isfinite(sizes):
            self.unknown += g.v.size
            return True
        self.compared += g.v.size
        finite = np.isfinite(g.v).all()
        if not finite or (np.isfinite(far) and abs(got - wanted) > far):
            detail = f"by {name}, along a direction: {got} for {wanted} within {far:.3g}"
            self.failures.append(
                Failure("wrong gradient" if finite else "gradient not finite", "gradient mathematics", detail)
            )
        return True

    def _attempt(self, stage: str, run: Callable[[], T]) -> T | None:
        """What `run` gives; an exception that is no diagnostic is a failure."""
        try:
            return run()
        except (TooLarge, DiagnosticError, CallError):
            raise
        except Exception as error:
            self.failures.append(_exception(stage, error))
            return None


def _exception(stage: str, error: Exception) -> Failure:
    """An exception as a failure, grouped by where it was raised."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "/opgen/" in f.filename]
    last = frames[-1] if frames else traceback.extract_tb(error.__traceback__)[-1]
    place = f"{last.filename.split('/opgen/')[-1]}:{last.lineno}"
    message = str(error).splitlines()[0][:160] if str(error) else ""
    shown = re.sub(r"\b\w*\d\w*\b", "#", message)[:60]
    return Failure(f"{type(error).__name__} at {place}: {shown}", stage, message)


def _scalar(types: Mapping[str, str], name: str) -> str:
    found = types.get(name, name)
    return {"half": "float16", "float": "float32", "double": "float64"}.get(found, found)


def _right(got: Array, want: Value) -> Array:
    """Which elements are as they should be, within the bounds."""
    if not want.is_float:
        return np.asarray(got == want.v)
    value = got.astype(np.float64)
    with np.errstate(all="ignore"):
        return np.asarray((value == want.v) | (np.abs(value - want.v) <= want.e))


def _lowered(case: Case) -> tuple[Kernel, dict[str, int | float | bool], dict[str, Array]]:
    """The generic kernel, its parameters in this call, and its inputs."""
    attrs = case.program.attrs
    values = {a.name: str(attrs.get(a.name, a.default)) for a in structural_attrs(case.op)}
    lowered = lower(case.module, case.op, Variant(case.program.types, values))
    environment = case.environment
    given = [evaluate(a, environment) for a in lowered.arguments]
    parameters = {p.name: v for p, v in zip(lowered.kernel.parameters, given, strict=True)}
    arrays = {b.name: case.arrays[b.name].astype(numpy_type(b.dtype.name)) for b in lowered.kernel.inputs}
    return lowered.kernel, parameters, arrays


def _ran(kernel: Kernel, arrays: Mapping[str, Array], parameters: Mapping[str, Any]) -> dict[str, Array]:
    """What a kernel gives, scheduled as for a call, its arrays against protected pages."""
    _, fast = tuned.scheduled(simplify(kernel), toolchain.host())
    return run_kernel(legalize(fast, check=False), arrays, parameters, guarded=True)


def _places(case: Case) -> float:
    """About how many places the nests of an op have."""
    return sum(_space(d, case.environment) for d in case.op.definitions)


def _space(definition: Definition, environment: Environment) -> float:
    outer = float(np.prod([evaluate(r.extent, environment) for r in definition.indices], dtype=np.float64))
    inner = 0.0
    for e in subexpressions(definition.value):
        if isinstance(e, Reduce):
            inner += float(np.prod([_extent(r.extent, environment) for r in e.indices], dtype=np.float64))
    return outer * (1 + inner)


def _extent(e: Expr, environment: Environment) -> float:
    try:
        return float(evaluate(e, environment))
    except KeyError:
        return 16.0
