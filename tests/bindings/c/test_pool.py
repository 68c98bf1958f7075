"""The pool of a library where there is no OpenMP: callers at once, forks, unloading, the end of a program."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from opgen.bindings.c.build import Options, build
from opgen.bindings.c.parallel import loop_object
from opgen.codegen.llvm.target import Target
from opgen.grad.load import load
from tests.support.matrix_product import SPEC

COMMON = r"""
#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "products.h"

enum { N = 192 };

/** The threads that this process has. */
static int tasks(void)
{
    int count = 0;
    DIR *found = opendir("/proc/self/task");
    while (found != NULL && readdir(found) != NULL) {
        count++;
    }
    closedir(found);
    return count - 2;
}

typedef products_status product(const products_tensor *, const products_tensor *, const products_mat_mul_attrs *,
                                const products_tensor *);

/** Whether the product of a matrix of `value` and one of ones is right. */
static int right(product *multiply, float value)
{
    float *x = malloc(sizeof(float) * N * N), *w = malloc(sizeof(float) * N * N), *y = malloc(sizeof(float) * N * N);
    int64_t shape[] = {N, N};
    const products_dtype f32 = {PRODUCTS_FLOAT, 32, 1};
    const products_tensor a = {x, {1, 0}, 2, f32, shape, NULL, 0}, b = {w, {1, 0}, 2, f32, shape, NULL, 0};
    const products_tensor c = {y, {1, 0}, 2, f32, shape, NULL, 0};
    for (int i = 0; i < N * N; i++) {
        x[i] = value;
        w[i] = 1;
        y[i] = -1;
    }
    int fine = multiply(&a, &b, NULL, &c) == PRODUCTS_OK;
    for (int i = 0; i < N * N; i++) {
        fine = fine && y[i] == N * value;
    }
    free(x);
    free(w);
    free(y);
    return fine;
}
"""

CALLERS = (
    COMMON
    + r"""
static void *call(void *number)
{
    for (int k = 0; k < 60; k++) {
        if (!right(products_mat_mul, (float)(*(int *)number + k))) {
            return number;
        }
    }
    return NULL;
}

int main(int count, char **given)
{
    const int threads = count > 1 ? atoi(given[1]) : 1, children = count > 2 ? atoi(given[2]) : 0;
    pthread_t callers[6];
    int numbers[6] = {0, 1, 2, 3, 4, 5};
    products_set_num_threads(threads);
    for (int i = 0; i < 6; i++) {
        pthread_create(&callers[i], NULL, call, &numbers[i]);
    }
    for (int i = 0; i < 6; i++) {
        void *wrong;
        pthread_join(callers[i], &wrong);
        if (wrong != NULL) {
            return 1;
        }
    }
    if (tasks() > threads + 1) { /* the workers, this thread, and a sanitizer's */
        return 2;
    }
    for (int i = 0; i < children; i++) {
        const pid_t child = fork();
        int status;
        if (child == 0) {
            const int before = tasks();
            const int fine = right(products_mat_mul, 3) && right(products_mat_mul, 4);
            exit(fine && tasks() == before + threads - 1 ? 0 : 3);
        }
        if (waitpid(child, &status, 0) != child || status != 0 || !right(products_mat_mul, 2)) {
            return 4;
        }
    }
    return 0;
}
"""
)

UNLOADED = (
    COMMON
    + r"""
int main(int count, char **given)
{
    for (int i = 0; i < 40 && count > 1; i++) {
        void *library = dlopen(given[1], RTLD_NOW | RTLD_LOCAL);
        product *multiply;
        *(void **)(&multiply) = dlsym(library, "products_mat_mul");
        if (!right(multiply, 1)) {
            return 1;
        }
        if (i % 2 == 0) {
            usleep(1000); /* the workers sleep by now */
        }
        dlclose(library);
        if (tasks() != 1 || dlopen(given[1], RTLD_NOW | RTLD_NOLOAD) != NULL) {
            return 2;
        }
    }
    return 0;
}
"""
)

AT_THE_END = r"""
#include <cstdio>
#include <cstdlib>
#include <pthread.h>
#include <unistd.h>
#include <vector>
#include "products.h"

static bool right() {
  std::vector<float> x(40000, 2), w(40000, 1), y(40000);
  int64_t shape[] = {200, 200};
  const products_dtype f32 = {PRODUCTS_FLOAT, 32, 1};
  const products_tensor a = {x.data(), {1, 0}, 2, f32, shape, nullptr, 0};
  const products_tensor b = {w.data(), {1, 0}, 2, f32, shape, nullptr, 0};
  const products_tensor c = {y.data(), {1, 0}, 2, f32, shape, nullptr, 0};
  return products_mat_mul(&a, &b, nullptr, &c) == PRODUCTS_OK && y[0] == 400 && y[39999] == 400;
}

struct Late {
  ~Late() { std::puts(right() ? "right" : "wrong"); }
};
static Late late;

static void late_function() { std::puts(right() ? "right" : "wrong"); }

static void* go_on(void*) {
  for (;;) right();
}

int main() {
  std::atexit(late_function);
  pthread_t other;
  if (!right() || pthread_create(&other, nullptr, go_on, nullptr) != 0) return 1;
  usleep(20000);
  return 0;
}
"""

FLAGS = ["-Wall", "-Wextra", "-Werror", "-O1", "-g"]
LINKED = ["-lm", "-ldl", "-lpthread"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("products") / "products.op"
    path.write_text(SPEC)
    build(load(path), path.name, path.parent / "library", Options())
    return path.parent / "library"


def program(folder: Path, source: str, place: Path, *options: str, glue: bool = True) -> Path:
    """A program with the library's glue (compiled with the same options) and kernels."""
    suffix, compiler = ("cpp", ["g++", "-std=c++17"]) if "std::" in source else ("c", ["gcc", "-std=gnu99"])
    (place / f"main.{suffix}").write_text(source)
    includes = f"-I{folder / 'include'}"
    objects = []
    for file in sorted((folder / "src" / "products").glob("*.c")) if glue else ():
        objects.append(place / f"{file.stem}.o")
        subprocess.run(["gcc", "-std=gnu99", *FLAGS, *options, includes, "-c", file, "-o", objects[-1]], check=True)
    library = [folder / "lib" / "libproducts.a"] if glue else []
    command = [*compiler, *FLAGS, *options, includes, place / f"main.{suffix}", *objects, *library, *LINKED]
    subprocess.run([*command, "-o", place / "program"], check=True)
    return place / "program"


def ended(command: list[str | Path], threads: int, **environment: str) -> str:
    """What a program says that uses no OpenMP; it must succeed."""
    own = {"PRODUCTS_THREADING": "pthread", "PRODUCTS_NUM_THREADS": str(threads)}
    done = subprocess.run(
        command, env={**os.environ, **own, **environment}, capture_output=True, text=True, check=False, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize("threads", [2, 5])
@pytest.mark.parametrize(("sanitizer", "children"), [("thread", 0), ("address,undefined", 3)])
def test_callers_at_once_and_their_children(
    sanitizer: str, children: int, threads: int, folder: Path, tmp_path: Path
) -> None:
    """No data race, and no deadlock; workers are no more than one caller asks for, and a child has its own.

    The thread sanitizer cannot follow threads of a child whose parent has some.
    """
    made = program(folder, CALLERS, tmp_path, f"-fsanitize={sanitizer}", "-fno-sanitize-recover=all")
    options = {"TSAN_OPTIONS": "halt_on_error=1", "ASAN_OPTIONS": "detect_leaks=0"}
    ended([made, str(threads), str(children)], threads, **options)


@pytest.mark.parametrize(("architecture", "level"), [("x86_64", "x86-64"), ("aarch64", "aarch64")])
def test_the_loop_is_made_for_the_architecture_of_the_library(architecture: str, level: str) -> None:
    name, code = loop_object("products", architecture, Target.from_name(level))
    assert name == "products_k_loop"
    assert int.from_bytes(code[18:20], "little") == {"x86_64": 62, "aarch64": 183}[architecture]  # ELF's e_machine
    assert b"products_k_loop_for_parts" in code
    assert b"opgen_parallel" not in code


@pytest.mark.parametrize("threads", [2, 8])
def test_a_library_that_is_unloaded_takes_its_workers_along(threads: int, folder: Path, tmp_path: Path) -> None:
    made = program(folder, UNLOADED, tmp_path, glue=False)
    ended([made, folder / "lib" / "libproducts.so"], threads)


def test_a_program_may_call_until_its_very_end(folder: Path, tmp_path: Path) -> None:
    made = program(folder, AT_THE_END, tmp_path)
    for _ in range(10):
        assert ended([made], 3) == "right\nright\n"
