"""The C library keeps large blocks for temporary results, as the runtime does."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from opgen.bindings.c.render import environment
from opgen.runtime.memory import temporaries_ir
from opgen.runtime.memory.blocks import LARGE

HEAD = """
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
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


@pytest.mark.parametrize("sanitizer", ["thread", "address,undefined"])
def test_threads_never_share_a_block(sanitizer: str, tmp_path: Path) -> None:
    text = environment.get_template("temporaries.c.jinja").render(
        large=LARGE,
        kept=temporaries_ir.KEPT,
        share=temporaries_ir.SHARE,
        slots=temporaries_ir.SLOTS,
        slack=temporaries_ir.SLACK,
    )
    source = tmp_path / "main.c"
    source.write_text("#define _GNU_SOURCE\n" + HEAD + text + MAIN)
    flags = ["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", f"-fsanitize={sanitizer}", "-fno-sanitize-recover=all"]
    subprocess.run(["cc", *flags, "-pthread", source, "-o", tmp_path / "main"], check=True)
    done = subprocess.run([tmp_path / "main"], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "0 1\n"), done.stderr
