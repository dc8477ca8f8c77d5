"""The kernel's own drivers/perf/arm_spe_pmu.c, unmodified, as a library for this machine, over `shim.h` and `shim.c`.

The file is GPL-2.0: it is taken from Debian's source package when it is needed, and stays in `build`.
"""

import hashlib
import os
import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

__all__ = ["VERSIONS", "build", "find_source"]

VERSIONS = ("6.1", "6.12")

_HERE = Path(__file__).parent
_BUILD = Path(__file__).parents[2] / "build" / "linux"

_DRIVER = "drivers/perf/arm_spe_pmu.c"
_SYSREG = "arch/arm64/tools/sysreg"
_GENERATOR = "arch/arm64/tools/gen-sysreg.awk"
_HEADERS = ("arch/arm64/include/asm/sysreg.h", "include/linux/perf/arm_pmu.h")

_DEFINITION = re.compile(
    r"^#define[ \t]+(?:(?:SYS_)?(?:PM[SB][A-Z]+_EL1|ID_AA64DFR0_EL1)"
    r"|_*GEN_PMU_FORMAT_ATTR|_?ATTR_CFG_GET_FLD|ARMV8_SPE_PDEV_NAME)(?:.*\\\n)*.*\n",
    re.MULTILINE,
)
"""What the driver uses of the kernel's definitions: registers and their fields, and how it tells of perf's terms."""


def find_source(version: str) -> Path | None:
    """Debian's tarball of a kernel, where the package or `.ci/linux-source` puts it."""
    places = [folder / f"linux-source-{version}.tar.xz" for folder in (Path("/usr/src"), _BUILD)]
    return next((place for place in places if place.exists()), None)


def build(tarball: Path, page_shift: int) -> Path:
    """The library of that kernel, with pages of `1 << page_shift` bytes: from `build` if it has been made before."""
    kernel = _unpack(tarball)
    shim = {name: (_HERE / name).read_bytes() for name in ("shim.h", "shim.c", "library.py")}
    command = [os.environ.get("CC", "gcc"), "-std=gnu11", "-O1", "-w", "-fPIC", "-shared", "-fvisibility=hidden"]
    command += ["-Wl,-z,defs", f"-I{_HERE}", "-I.", "-Iinclude", f"-DPAGE_SHIFT={page_shift}"]
    if "static int arm_spe_pmu_device_remove" in (kernel / _DRIVER).read_text():
        command += ["-DSPE_REMOVE_RETURNS_INT"]
    key = hashlib.sha256(repr((sorted(shim.items()), kernel.name, command)).encode()).hexdigest()[:16]
    library = _BUILD / f"{kernel.name}-{key}.so"
    if not library.exists():
        with tempfile.TemporaryDirectory(dir=_BUILD) as name:
            folder = Path(name)
            _write_headers(kernel, folder)
            driver = ["-include", _HERE / "shim.h", kernel / _DRIVER]
            _run([*command, "-o", "library.so", *driver, _HERE / "shim.c"], folder)
            (folder / "library.so").replace(library)
    return library


def _unpack(tarball: Path) -> Path:
    """The files of the kernel that are used, of a tree of some gigabytes."""
    name = tarball.name.removesuffix(".tar.xz")
    status = tarball.stat()
    kernel = _BUILD / f"{name}-{hashlib.sha256(repr((status.st_size, status.st_mtime_ns)).encode()).hexdigest()[:8]}"
    if not kernel.exists():
        _BUILD.mkdir(parents=True, exist_ok=True)
        files = [f"{name}/{file}" for file in (_DRIVER, _SYSREG, _GENERATOR, *_HEADERS)]
        with tempfile.TemporaryDirectory(dir=_BUILD) as folder:
            # With --occurrence it does not read on after the last of them.
            _run(["tar", "--extract", "--occurrence=1", "--file", tarball, *files], folder)
            Path(folder, name).replace(kernel)
    return kernel


def _write_headers(kernel: Path, folder: Path) -> None:
    """spe_regs.h, and an empty file for each header that the driver names."""
    generated = _run(["awk", "-f", kernel / _GENERATOR, kernel / _SYSREG], folder)
    headers = [generated, *((kernel / header).read_text() for header in _HEADERS)]
    definitions = [match[0] for header in headers for match in _DEFINITION.finditer(header)]
    (folder / "spe_regs.h").write_text("".join(definitions))
    for name in re.findall(r"^#include <(.*)>", (kernel / _DRIVER).read_text(), re.MULTILINE):
        header = folder / "include" / name
        header.parent.mkdir(parents=True, exist_ok=True)
        header.touch()


def _run(command: Sequence[str | Path], folder: str | Path) -> str:
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if run.returncode:
        raise RuntimeError(f"{command[0]} failed: {run.stderr.strip()}")
    return run.stdout
