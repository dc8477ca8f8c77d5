"""QEMU for tests: the package of Debian 12, and the version that `make qemu` builds."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from elftools.elf.elffile import ELFFile

from spurtle.support.errors import UserError
from spurtle_sim.native.cache import cache_folder
from spurtle_sim.qemu.find import Qemu, find_qemu

__all__ = [
    "CROSS_COMPILER",
    "SYSROOT",
    "THREADS",
    "compiled",
    "every_qemu",
    "needs_compiler",
    "qemu_versions",
    "read_symbols",
]

_COMMANDS = {"package": "apt-get install qemu-user", "built": "make qemu"}

CROSS_COMPILER = "aarch64-linux-gnu-gcc"
SYSROOT = Path("/usr/aarch64-linux-gnu")
"""Folder of the libraries of the cross compiler."""

THREADS = """
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static pthread_barrier_t barrier;
static long total;
static void *work(void *argument) {
    pthread_setname_np(pthread_self(), "worker");
    pthread_barrier_wait(&barrier);
    for (volatile long i = 0; i < 3000; i++) __atomic_add_fetch(&total, 1, __ATOMIC_SEQ_CST);
    return argument;
}
int main(int count, char **arguments) {
    int threads = atoi(arguments[1]);
    pthread_t *thread = malloc(threads * sizeof(*thread));
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 1 << 16);
    pthread_barrier_init(&barrier, 0, threads);
    for (int i = 0; i < threads; i++)
        if (pthread_create(&thread[i], &attributes, work, 0)) return 3;
    for (int i = 0; i < threads; i++) pthread_join(thread[i], 0);
    return total != 3000L * threads;
}
"""
"""Program whose argument is a number of threads."""

needs_compiler = pytest.mark.skipif(
    shutil.which(CROSS_COMPILER) is None or not (SYSROOT / "lib" / "libc.so.6").exists(),
    reason=f"{CROSS_COMPILER} is not installed: apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross",
)


def _find(path: str | None) -> Qemu | None:
    try:
        return find_qemu(path) if path and shutil.which(path) else None
    except UserError:  # it accepts no plugins
        return None


def every_qemu() -> dict[str, Qemu | None]:
    """Return both versions, by the names of `qemu_versions`."""
    return {
        "package": _find("/usr/bin/qemu-aarch64"),
        "built": _find(str(cache_folder() / "tools" / "qemu-aarch64")),
    }


def qemu_versions() -> list[Any]:
    """Return cases for `pytest.mark.parametrize`: each version, which is skipped if it is absent."""
    return [
        pytest.param(qemu, id=name, marks=pytest.mark.skipif(qemu is None, reason=f"QEMU is absent: {_COMMANDS[name]}"))
        for name, qemu in every_qemu().items()
    ]


def compiled(folder: Path, source: str, *options: str) -> Path:
    """Return the executable of a C source, in a folder."""
    (folder / "program.c").write_text(source)
    command = [CROSS_COMPILER, "-O1", "-pthread", *options, "-o", folder / "program", folder / "program.c"]
    subprocess.run(command, check=True, capture_output=True)
    return folder / "program"


def read_symbols(path: Path) -> dict[str, int]:
    """Return the address of each symbol."""
    with path.open("rb") as file:
        table: Any = ELFFile(file).get_section_by_name(".symtab")
        return {symbol.name: symbol["st_value"] for symbol in table.iter_symbols()}
