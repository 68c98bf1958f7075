"""Files damaged, cut, exchanged, or replaced by something that is no file."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path


def damage(path: Path, others: list[bytes], choose: random.Random) -> str:
    """Do something to a file; what."""
    data = bytearray(path.read_bytes()) if path.is_file() and not path.is_symlink() else bytearray(b"x")
    kind = choose.choice(
        ("bytes", "bytes", "cut", "more", "text", "other", "link", "loop", "pipe", "folder", "zero", "gone")
    )
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    match kind:
        case "bytes":
            for _ in range(choose.choice((1, 1, 3, 30))):
                at = choose.randrange(len(data) + 1)
                data[at : at + choose.randrange(3)] = bytes([choose.randrange(256)]) * choose.randrange(3)
            path.write_bytes(data)
        case "cut":
            path.write_bytes(data[: choose.randrange(len(data) + 1)])
        case "more":
            path.write_bytes(data + bytes([choose.randrange(256)]) * choose.choice((1, 100, 10_000_000)))
        case "text":
            path.write_text(choose.choice(("", "{}", "[" * 100_000, "null", "9" * 5000, "\n" * 1000, '{"a": 1e999}')))
        case "other":
            path.write_bytes(choose.choice(others) if others else b"")
        case "link":
            path.symlink_to("/dev/zero")
        case "loop":
            path.symlink_to(path.name)
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case "zero":
            with path.open("wb") as file:
                file.truncate(choose.choice((0, 1, 1 << 33)))
    return f"{path.name}: {kind}"
