"""Mutated models: each is read, or is refused with an error of opgen's own; soon, and with little memory."""

from __future__ import annotations

import os
import random
import resource
import time
from pathlib import Path

from opgen.diagnostics import UserError
from opgen.onnx.load import load, operators
from tests.onnx.models import module
from tests.onnx.mutate import base_models, changed_bytes, changed_field

SEED = int(os.environ.get("OPGEN_SEED", 1))
COUNT = int(os.environ.get("OPGEN_MUTATED", 500))
SECONDS = 5.0
"""The longest that one model may take; most take some milliseconds."""
BYTES = 1 << 30
"""The most memory that all of them may add."""


def test_mutated_models_are_read_or_refused(tmp_path: Path) -> None:
    print(f"OPGEN_SEED={SEED} OPGEN_MUTATED={COUNT}")
    chance = random.Random(SEED)
    bases = base_models(chance)
    specs = (module(), operators())
    path = tmp_path / "model.onnx"
    (tmp_path / "data").write_bytes(bytes(4))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    read = refused = 0
    for number in range(COUNT):
        base = bases[0] if chance.random() < 0.5 else chance.choice(bases)
        if number % 2:
            data = changed_bytes(base.SerializeToString(), chance)
        else:
            data = changed_field(base, chance).SerializeToString()
        path.write_bytes(data)
        begin = time.monotonic()
        said = ""
        try:
            load(path, specs[number % 3 == 0])
            read += 1
        except UserError as error:
            said = str(error)
            refused += 1
        except Exception as error:
            raise AssertionError(f"model {number} of seed {SEED}") from error
        assert not said or said.startswith(str(path)), (number, said)
        assert time.monotonic() - begin < SECONDS, number
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    assert grown < BYTES
    assert read + refused == COUNT
    assert refused > COUNT // 4
