"""Builds of the kernel's drivers/perf/arm_spe_pmu.c, unmodified, as a library for this machine.

`shim.h` and `shim.c` replace the rest of the kernel. The driver is GPL-2.0: it is extracted from Debian's source
package, by `.ci/linux-source` or when it is required, and stays in the user's cache. `files.txt` lists its files.
"""

import os
import re
from pathlib import Path

from spurtle_sim.native.cache import cache_folder, find_or_build
from spurtle_sim.native.compiler import run

__all__ = ["VERSIONS", "build", "find_source", "sysreg_defs"]

VERSIONS = ("6.1", "6.12")

_HERE = Path(__file__).parent

FILES = (_HERE / "files.txt").read_text().split()
"""Required files of the kernel."""

_DRIVER, _SYSREG, _GENERATOR, *_HEADERS = FILES

_DEFINITION = re.compile(
    r"^#define[ \t]+(?:(?:SYS_)?(?:PM[SB][A-Z]+_EL1|ID_AA64DFR0_EL1)"
    r"|_*GEN_PMU_FORMAT_ATTR|_?ATTR_CFG_GET_FLD|ARMV8_SPE_PDEV_NAME)(?:.*\\\n)*.*\n",
    re.MULTILINE,
)
"""Definitions of the kernel that the driver uses: registers, their fields, and macros for the format of perf events."""


def find_source(version: str) -> Path | None:
    """Return the sources of a kernel, None if they are absent.

    They are the folder with the driver that `.ci/linux-source` has unpacked, or the tarball of Debian.
    """
    name = f"linux-source-{version}"
    tools = cache_folder() / "tools"
    if all((tools / name / file).exists() for file in FILES):
        return tools / name
    tarballs = [folder / f"{name}.tar.xz" for folder in (Path("/usr/src"), tools)]
    return next((tarball for tarball in tarballs if tarball.exists()), None)


def build(source: Path, page_shift: int) -> Path:
    """Return the library of a kernel with pages of `1 << page_shift` bytes. It is built once and cached."""
    kernel = _unpack(source)
    texts = [(kernel / file).read_text() for file in FILES]
    shim = {name: (_HERE / name).read_text() for name in ("shim.h", "shim.c", "library.py")}
    command = [os.environ.get("CC", "gcc"), "-std=gnu11", "-O1", "-w", "-fPIC", "-shared", "-fvisibility=hidden"]
    command += ["-Wl,-z,defs", "-I.", "-Iinclude", f"-DPAGE_SHIFT={page_shift}"]
    if "static int arm_spe_pmu_device_remove" in (kernel / _DRIVER).read_text():
        command += ["-DSPE_REMOVE_RETURNS_INT"]

    def compile_(folder: Path) -> Path:
        _write_headers(kernel, folder)
        driver = [f"-I{_HERE}", "-include", _HERE / "shim.h", kernel / _DRIVER]
        run([*command, "-o", "library.so", *driver, _HERE / "shim.c"], folder)
        return folder / "library.so"

    return find_or_build("linux_driver.so", (sorted(shim.items()), texts, command), compile_)


def _unpack(source: Path) -> Path:
    """Return a folder with the required files of a kernel, whose tree has some gigabytes."""
    if source.is_dir():
        return source
    name = source.name.removesuffix(".tar.xz")
    files = [f"{name}/{file}" for file in FILES]

    def extract(folder: Path) -> Path:
        # With --occurrence tar stops after the last of the files.
        run(["tar", "--extract", "--occurrence=1", "--file", source, *files], folder)
        return folder / name

    status = source.stat()
    return find_or_build("linux", (name, status.st_size, status.st_mtime_ns), extract)


def sysreg_defs(source: Path) -> str:
    """Return the header sysreg-defs.h of a kernel, which a script of the kernel generates."""
    return _sysreg_defs(_unpack(source))


def _sysreg_defs(kernel: Path) -> str:
    return run(["awk", "-f", kernel / _GENERATOR, kernel / _SYSREG], kernel)


def _write_headers(kernel: Path, folder: Path) -> None:
    """Write spe_regs.h, and an empty file for each header that the driver includes."""
    headers = [_sysreg_defs(kernel), *((kernel / header).read_text() for header in _HEADERS)]
    definitions = [match[0] for header in headers for match in _DEFINITION.finditer(header)]
    (folder / "spe_regs.h").write_text("".join(definitions))
    for name in re.findall(r"^#include <(.*)>", (kernel / _DRIVER).read_text(), re.MULTILINE):
        header = folder / "include" / name
        header.parent.mkdir(parents=True, exist_ok=True)
        header.touch()
