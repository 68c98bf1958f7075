"""Mutated command lines."""

from __future__ import annotations

import os
import random
import shlex
import shutil
from pathlib import Path

from tests.verification.attack.finding import FoundError, Target
from tests.verification.attack.targets.commands import run

SPEC = '''"""Small."""

op Mix {
  """A weighted sum."""
  type T in {float32, float64}
  input x: T[rows, depth] """Values."""
  input w: T[depth] """Weights."""
  attr steps: int[2] >= 1 = [1, 2] """Two numbers."""
  attr scale: float = 1.0 """A factor."""
  attr kind: enum {SUM, MEAN} = SUM """How."""
  output y: T[rows] """Sums."""
  y[i] = sum[k](x[i, k] * w[k]) * scale * T(steps[0]) * (if kind == MEAN then 0.5 else 1.0)
}
'''
LINES = (
    "check mix.op",
    "check mix.op --json",
    "fmt --check mix.op",
    "fmt mix.op",
    "generate mix.op -o out",
    "generate mix.op -o out --check",
    "generate mix.op -o out --dry-run",
    "inspect Mix --specs mix.op --stage loop",
    "inspect Mix --specs mix.op --stage schedule --shape x=8,16 --shape w=16 --attr steps=1,1",
    "inspect Mix --specs mix.op --stage llvm --dtype float64 --attr kind=MEAN --output text",
    "inspect Mix --specs mix.op --stage scheduled --schedule mix.schedule",
    "inspect Mix --specs mix.op --json",
    "build mix.op -o lib --ops mix --target x86-64-v3 --specialize Mix:rows=8 --prefix a --jobs 1 --ops None",
    "tune Mix --specs mix.op --shape x=8,16 --shape w=16 --seconds 0 --seed 3",
    "tune --specs mix.op --calls calls.json --seconds 0",
    "tune --list",
    "tune --forget all",
    "cache info",
    "doctor",
    "new fresh -o out",
)
ODD = (
    *(
        "",
        " ",
        "-",
        "--",
        "=",
        ",",
        "[",
        "x=",
        "=1",
        "x=1,2,3",
        "9" * 5000,
        "-1",
        "1e400",
        "nan",
        "inf",
        "\udcff",
        "\0",
    ),
    *(
        "x" * 5000,
        "/dev/zero",
        "/dev/null",
        "/dev/full",
        "pipe",
        "folder",
        "link",
        "deep.json",
        "numbers.json",
        "binary",
    ),
    *("mix.op:1", "Mix", "mix", "--help", "-h", "--json", "x=9223372036854775807,9223372036854775807", "w=0", "\u202e"),
    *("large.op", "x=1,,2", "{}", "%s", "$HOME", "`id`", "\n", "--shape", "--specs", "--stage", "-o", "--seconds"),
)


class CommandLines(Target):
    """Mutated command lines, with odd files in place of what they name."""

    name = "command_lines"

    def prepare(self) -> None:
        """Nothing is shared: each attempt has a folder of its own."""

    def attempt(self, choose: random.Random) -> None:
        place = self.folder / "now"
        shutil.rmtree(place, ignore_errors=True)
        _furnish(place)
        os.chdir(place)
        words = shlex.split(choose.choice(LINES))
        for _ in range(choose.choice((0, 1, 1, 2, 3))):
            words = _mutated(words, choose)
        if choose.random() < 0.1:
            os.environ[choose.choice(("OPGEN_MACHINE", "OPGEN_TUNED", "OPGEN_CACHE_DIR"))] = choose.choice(
                [w for w in ODD if "\0" not in w]
            )
        run(words)
        outside = {p.name for p in self.folder.iterdir()} - {"now", "cache"}
        if outside:
            raise FoundError(f"written outside: {outside}", shlex.join(words))


def _furnish(place: Path) -> None:
    """A folder with what the lines name, and with odd files."""
    place.mkdir()
    for name, text in (
        ("mix.op", SPEC),
        ("mix.schedule", "parallel i\n"),
        ("calls.json", '[{"op": "Mix", "shapes": {"x": [8, 16], "w": [16]}, "attrs": {"steps": [1, 1]}}]'),
        ("deep.json", "[" * 50_000),
        ("numbers.json", '[{"op": "Mix", "shapes": {"x": [' + "9" * 5000 + "]}}]"),
        ("large.op", "#" * (10 << 20)),
    ):
        (place / name).write_text(text)
    (place / "binary").write_bytes(bytes(range(256)))
    (place / "folder").mkdir()
    (place / "link").symlink_to("link")
    os.mkfifo(place / "pipe")


def _mutated(words: list[str], choose: random.Random) -> list[str]:
    at = choose.randrange(len(words))
    match choose.randrange(5):
        case 0:
            return words[:at] + words[at + 1 :] or words
        case 1:
            return [*words[:at], choose.choice(ODD), *words[at:]]
        case 2:
            name, equals, _ = words[at].partition("=")
            return [*words[:at], f"{name}{equals}{choose.choice(ODD)}", *words[at + 1 :]] if equals else words
        case 3:
            other = shlex.split(choose.choice(LINES))
            return [*words[:at], *other[choose.randrange(len(other)) :]]
    return [*words[:at], choose.choice(ODD), *words[at + 1 :]]
