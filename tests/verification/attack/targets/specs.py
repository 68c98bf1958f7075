"""Mutated specs."""

from __future__ import annotations

import random
import re
from pathlib import Path

from tests.verification.attack.finding import Target
from tests.verification.attack.targets.commands import run

ROOT = Path(__file__).resolve().parents[4]
ODD = [
    "\0",
    "\u2028",
    "é",
    "\t",
    "9" * 30,
    "1e999",
    "not ",
    '"""',
    "-",
    "9223372036854775807",
    "{",
    "}",
    "|",
    "\\",
    "'",
]
GROWN = (200, 2000, 20000)
"""How often a piece of text is repeated."""


class Specs(Target):
    """Mutated specs through check, generate and inspect, each in 5 s and 512 MiB."""

    name = "specs"

    def prepare(self) -> None:
        paths = [*(ROOT / "specs").glob("*.op"), *(ROOT / "tests" / "specs").glob("*.op"), ROOT / "tools/common_ops.op"]
        texts = [path.read_text(encoding="utf-8") for path in sorted(paths)]
        found = [p for text in texts for p in re.split(r"(?m)^(?=op |function |fragment )", text)[1:]]
        self.snippets: list[str] = [p for p in found if p.startswith("op ")]
        self.tokens: list[str] = [*sorted(set(re.findall(r'\w+|"""|[^\w\s]', "".join(found)))), *ODD]
        window = ROOT / "specs" / "window.op"
        (self.folder / "window.op").write_bytes(window.read_bytes())
        run(["check", str(window)])

    def attempt(self, choose: random.Random) -> None:
        text = 'import "window.op"\n' + choose.choice(self.snippets)
        for _ in range(choose.choice((0, 1, 1, 2, 3, 5))):
            text = self.mutated(text, choose)
        path = self.folder / "spec.op"
        path.write_bytes(text[:100_000].encode("utf-8", "surrogatepass"))
        op = re.search(r"op (\w+)", text)
        commands = [["check", str(path)], ["generate", str(path), "-o", str(self.folder / "out")]]
        if op:
            stage = choose.choice(("model", "loop", "schedule", "llvm", "cuda"))
            commands.append(["inspect", op[1], "--specs", str(path), "--stage", stage])
        run(choose.choice(commands), text)

    def mutated(self, text: str, choose: random.Random) -> str:
        """A text that is changed in one place."""
        at, length = choose.randrange(len(text) + 1), choose.choice((1, 1, 2, 5, 20))
        words: list[re.Match[str]] = list(re.finditer(r"\w+|[^\w\s]", text))
        word = choose.choice(words) if words else None
        match choose.randrange(8):
            case 0:
                return text[:at] + text[at + length :]
            case 1:
                return text[:at] + choose.choice(self.tokens) + text[at:]
            case 2:
                other = choose.randrange(len(text) + 1)
                return text[:at] + text[other : other + 4 * length] + text[at:]
            case 3:
                return text[:at] if choose.random() < 0.2 else text
            case 4 if choose.random() < 0.2:
                return text[:at] + choose.choice(self.tokens) * choose.choice(GROWN) + text[at:]
            case 5:
                lines = text.split("\n")
                number = choose.randrange(len(lines))
                return "\n".join([*lines[:number], *[lines[number]] * choose.choice((2, 2, 50)), *lines[number + 1 :]])
            case _ if word is not None:
                new = choose.choice(self.tokens) if choose.random() < 0.8 else str(choose.choice(words)[0])
                return text[: word.start()] + new + text[word.end() :]
        return text
