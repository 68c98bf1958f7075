"""The C library keeps large blocks for temporary results, as the runtime does."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from opgen.bindings.c.render import environment
from opgen.runtime.memory import temporaries_ir
from opgen.runtime.memory.available import available
from opgen.runtime.memory.blocks import LARGE

HEAD = """
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
enum { LINE = 64 };
"""

MAIN = """
static int wrong;

static void *work(void *number)
{
    unsigned seed = *(unsigned *)number;
    int64_t *held[8] = {NULL};
    for (int step = 0; step < 400; step++) {
        const int k = rand_r(&seed) % 8;
        if (held[k] != NULL) {
            if (held[k][0] != *(unsigned *)number * 8 + k) {
                __atomic_store_n(&wrong, 1, __ATOMIC_RELAXED);
            }
            give_block(held[k]);
            held[k] = NULL;
        } else {
            held[k] = take_block(k < 2 ? 100 : large_block * (size_t)(1 + k % 2));
            held[k][0] = *(unsigned *)number * 8 + k;
        }
    }
    for (int k = 0; k < 8; k++) {
        if (held[k] != NULL) {
            give_block(held[k]);
        }
    }
    return NULL;
}

int main(void)
{
    void *first = take_block(large_block + 1000);
    give_block(first);
    void *again = take_block(large_block);
    wrong = first != again;
    give_block(again);
    pthread_t threads[6];
    unsigned numbers[6];
    for (unsigned t = 0; t < 6; t++) {
        numbers[t] = t + 1;
        pthread_create(&threads[t], NULL, work, &numbers[t]);
    }
    for (int t = 0; t < 6; t++) {
        pthread_join(threads[t], NULL);
    }
    printf("%d %d\\n", wrong, idle_bytes <= most_idle());
    return 0;
}
"""


def _text() -> str:
    return environment.get_template("temporaries.c.jinja").render(
        large=LARGE,
        kept=temporaries_ir.KEPT,
        share=temporaries_ir.SHARE,
        slots=temporaries_ir.SLOTS,
        slack=temporaries_ir.SLACK,
    )


@pytest.mark.parametrize(
    ("group", "bounds", "most"),
    [
        ("/", {"": "1073741824"}, 128 << 20),
        ("/a/b", {"": "max", "a": "268435456", "a/b": "1073741824"}, 32 << 20),
        ("/a", {"b": "1"}, None),
        (None, {"": "1"}, None),
    ],
)
def test_a_container_has_less_memory(
    group: str | None, bounds: dict[str, str], most: int | None, tmp_path: Path
) -> None:
    """The least bound of the control groups limits kept memory, in Python and in C; None: the machine's memory does."""
    groups, mounted = tmp_path / "groups", tmp_path / "mounted"
    groups.write_text("4:memory:/x\n" + ("" if group is None else f"0::{group}\n"))
    for name, bound in bounds.items():
        (mounted / name).mkdir(parents=True, exist_ok=True)
        (mounted / name / "memory.max").write_text(f"{bound}\n")
    machine = available(tmp_path / "none")
    assert available(groups, mounted) == (machine if most is None else most * temporaries_ir.SHARE)
    text = _text().replace("/proc/self/cgroup", str(groups)).replace("/sys/fs/cgroup", str(mounted))
    source = tmp_path / "main.c"
    main = 'int main(void) { give_block(take_block(1)); printf("%zu", most_idle()); return 0; }'
    source.write_text("#define _GNU_SOURCE\n" + HEAD + text + main)
    subprocess.run(["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", source, "-o", tmp_path / "main"], check=True)
    done = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=True)
    assert int(done.stdout) == (min(temporaries_ir.KEPT, machine // temporaries_ir.SHARE) if most is None else most)


@pytest.mark.parametrize("sanitizer", ["thread", "address,undefined"])
def test_threads_never_share_a_block(sanitizer: str, tmp_path: Path) -> None:
    source = tmp_path / "main.c"
    source.write_text("#define _GNU_SOURCE\n" + HEAD + _text() + MAIN)
    flags = ["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", f"-fsanitize={sanitizer}", "-fno-sanitize-recover=all"]
    subprocess.run(["cc", *flags, "-pthread", source, "-o", tmp_path / "main"], check=True)
    done = subprocess.run([tmp_path / "main"], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "0 1\n"), done.stderr
