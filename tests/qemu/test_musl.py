"""QEMU and Unicorn execute the same operations of programs that are linked with the C library musl, from `main` on.

What may differ:

* the start of the C library, which reads the environment and the auxiliary vector;
* the addresses of the stack and of mappings: the distance of the stacks is constant, and each page of a mapping in one
  run corresponds to one page in the other. `free` tests bits of these addresses, so the programs do not call it;
* random bytes and times, which these programs do not use. The first `malloc` looks for the random bytes of the program
  in the auxiliary vector, and is called before `main`.
"""

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile
from numpy.typing import NDArray

from spurtle_sim.emulator.front_end import FrontEnd
from spurtle_sim.emulator.program import Program
from spurtle_sim.native.cache import cache_folder
from spurtle_sim.qemu.find import Qemu
from spurtle_sim.qemu.program import QemuProgram
from tests.support.qemu import CROSS_COMPILER, needs_compiler, qemu_versions
from tests.support.runs import compare_operations

SYSROOT = cache_folder() / "tools" / "programs" / "usr"
LIBRARY, HEADERS = (SYSROOT / folder / "aarch64-linux-musl" for folder in ("lib", "include"))

START = """
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <fenv.h>
#include <math.h>
#include <regex.h>
#include <search.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <wchar.h>
__attribute__((constructor)) static void allocate(void) { void *volatile block = malloc(1); free(block); }
static int compare(const void *left, const void *right) { return *(int *)left - *(int *)right; }
static jmp_buf target;
static int depth(int count) { if (!count) longjmp(target, 7); return depth(count - 1) + 1; }
int main(void) {
"""

PROGRAMS = {
    "sorting": r"""
    static int v[300];
    for (int i = 0; i < 300; i++) v[i] = i * 7919 % 1009;
    qsort(v, 300, sizeof(int), compare);
    return v[150] & 127;
    """,
    "printing": r"""
    for (int i = 0; i < 40; i++) printf("%5d %-8x|%+.3f %s %c\n", i * i, i * 77, i / 7.0, "text", 65 + i);
    return 0;
    """,
    "parsing": r"""
    char text[] = "12 0x1f 017 -5 3.25e2 nan", *at = text;
    double sum = 0;
    int a, b;
    for (int i = 0; i < 4; i++) sum += strtol(at, &at, 0);
    sum += strtod(at, &at);
    sscanf("10:20", "%d:%d", &a, &b);
    return (int)sum + a + b & 255;
    """,
    "strings": r"""
    static char a[500], b[500];
    for (int i = 0; i < 499; i++) a[i] = 97 + i * 7 % 26;
    strcpy(b, a);
    strcat(b + 100, a + 450);
    return (strstr(a, "xyz") != 0) + strlen(strchr(b, 122)) + memcmp(a, b, 400) + strspn(a, "ah") & 127;
    """,
    "memory": r"""
    char *blocks[200];
    for (int i = 0; i < 200; i++) blocks[i] = memset(calloc(1, i * i % 5000 + 1), i, i + 1 & 1);
    return (blocks[150] != 0) + blocks[7][0];
    """,
    "mapping": r"""
    char *pages = mmap(0, 1 << 16, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int sum = 0;
    for (int i = 0; i < 1 << 16; i += 512) pages[i] = i >> 9;
    for (int i = 0; i < 1 << 16; i += 4096) sum += pages[i];
    munmap(pages + 4096, 8192);
    mprotect(pages, 4096, 1);
    mmap(pages + 16384, 4096, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    return sum + pages[16384] & 127;
    """,
    "mathematics": r"""
    double sum = 0;
    for (int i = 1; i < 30; i++) sum += sin(i) * exp(-i) + pow(i, 0.3) + log(i) + fma(i, 2, 1) + sqrt(i);
    return (int)(sum * 100) & 127;
    """,
    "jumps": r"""
    volatile int count = 0;
    if (setjmp(target) == 7 && count++ > 20) return count;
    return depth(count);
    """,
    "searching": r"""
    static int keys[60];
    void *root = 0;
    int found = 0;
    for (int i = 0; i < 60; i++) {
        keys[i] = i * 37 % 61;
        tsearch(&keys[i], &root, compare);
    }
    for (int i = 0; i < 61; i++) found += tfind(&i, &root, compare) != 0;
    return found;
    """,
    "files": r"""
    char text[64];
    struct stat status;
    int file = open("/dev/null", O_RDWR), pair[2];
    if (file < 0 || fstat(file, &status) || pipe2(pair, 0)) return 1;
    write(pair[1], "some bytes", 10);
    dup2(pair[0], 9);
    signal(SIGUSR1, SIG_IGN);
    raise(SIGUSR1);
    FILE *stream = fdopen(9, "r");
    close(pair[1]);
    fgets(text, 64, stream);
    return strlen(text) + S_ISCHR(status.st_mode) + fcntl(file, F_GETFL) % 4;
    """,
}

needs_musl = pytest.mark.skipif(
    not (LIBRARY / "libc.a").exists(), reason=f"{LIBRARY} does not exist: .ci/programs unpacks it"
)


def compiled(folder: Path, name: str) -> Path:
    source, program = folder / f"{name}.c", folder / name
    source.write_text(START + PROGRAMS[name] + "}")
    options = ["-O1", "-w", "-static", "-nostdinc", "-nostdlib", "-isystem", HEADERS]
    libraries = ["-Wl,--start-group", LIBRARY / "libc.a", "-lgcc", "-Wl,--end-group", LIBRARY / "crtn.o"]
    command = [CROSS_COMPILER, *options, LIBRARY / "crt1.o", LIBRARY / "crti.o", source, *libraries, "-o", program]
    subprocess.run(command, check=True, capture_output=True)
    return program


def main_of(path: Path) -> int:
    """Return the address of `main`."""
    with path.open("rb") as file:
        table: Any = ELFFile(file).get_section_by_name(".symtab")
        return table.get_symbol_by_name("main")[0]["st_value"]


def from_main(program: FrontEnd, main: int) -> NDArray[np.void]:
    operations = np.concatenate([batch.operations for batch in program.batches()])
    return operations[np.flatnonzero(operations["pc"] == main)[0] :]


@needs_compiler
@needs_musl
@pytest.mark.full
@pytest.mark.parametrize("qemu", qemu_versions())
def test_operations_from_main_on(qemu: Qemu, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for name in PROGRAMS:
        path = compiled(tmp_path, name)
        main, end = main_of(path), max(segment.end for segment in Program(path).image.segments)
        first, second = Program(path), QemuProgram(qemu, path)
        expected = from_main(first, main)
        output, errors = capfd.readouterr()
        assert errors == "", name
        found = from_main(second, main)
        assert capfd.readouterr().out == output, name
        assert first.exit_status == second.exit_status, name
        addresses = compare_operations(qemu, expected, found)
        program = addresses < end + (1 << 24)  # the file and the heap
        assert np.array_equal(found["va"][program], addresses[program]), name
        pages, others = addresses[~program] >> 12, found["va"][~program] >> 12
        stack = pages > 0x7FFF_0000_0000 >> 12
        assert len({*zip(pages[~stack].tolist(), others[~stack].tolist(), strict=True)}) == len(
            {*pages[~stack].tolist()}
        )
        assert len(np.unique(found["va"][~program][stack] - addresses[~program][stack])) <= 1, name
