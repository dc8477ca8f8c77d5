"""C++ of the plugin and of the reader."""

import shutil
import subprocess
from pathlib import Path

import pytest

from spurtle_sim.native.library import Library, package_files
from spurtle_sim.qemu import reader

WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror")


@pytest.mark.full
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
@pytest.mark.parametrize("library", [reader.library(), reader.plugin()], ids=lambda library: library.name)
def test_no_warnings(library: Library, compiler: str, tmp_path: Path) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    for name, text in library.sources.items():
        (tmp_path / name).write_text(text)
    units = [name for name in library.sources if name.endswith(".cpp")]
    command = [compiler, "-std=c++20", *WARNINGS, "-O2", "-fsyntax-only", *units]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


def test_the_files_of_the_plugin_have_both_licenses() -> None:
    sources = [name for name in reader.plugin().sources if name != "layout.h"]
    for text in package_files("spurtle_sim.qemu", *sources).values():
        assert text.startswith("// SPDX-License-Identifier: GPL-2.0-or-later OR Apache-2.0\n")
