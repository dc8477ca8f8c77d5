"""Choice of the emulator."""

import struct
from pathlib import Path

import pytest

from spurtle.support.errors import UserError
from spurtle_sim.cli import main
from spurtle_sim.emulator.program import Program
from spurtle_sim.profile.emulation import Emulation
from spurtle_sim.qemu import find
from spurtle_sim.qemu.find import Qemu
from spurtle_sim.qemu.program import QemuProgram
from tests.support.elf import EXIT, write_elf

OLD, NEW = Qemu("/nowhere/qemu", (7, 2, 22)), Qemu("/nowhere/qemu", (10, 0, 2))


@pytest.fixture
def static(tmp_path: Path) -> Path:
    path = write_elf(tmp_path / "static", EXIT)
    path.chmod(0o755)
    return path


@pytest.fixture
def dynamic(static: Path, tmp_path: Path) -> Path:
    content = bytearray(static.read_bytes())
    struct.pack_into("<I", content, 120, 3)  # the second header is PT_INTERP
    path = tmp_path / "dynamic"
    path.write_bytes(content)
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("emulation", "qemu", "expected"),
    [
        (Emulation(), NEW, (QemuProgram, QemuProgram)),
        (Emulation(), OLD, (Program, QemuProgram)),
        (Emulation(), None, (Program, None)),
        (Emulation(emulator="qemu"), OLD, (QemuProgram, QemuProgram)),
        (Emulation(emulator="qemu"), None, (None, None)),
        (Emulation(emulator="unicorn"), NEW, (Program, None)),
        (Emulation(sysroot="/usr"), OLD, (QemuProgram, QemuProgram)),
        (Emulation(follow=True), None, (None, None)),
        (Emulation(vector_length=256), NEW, (QemuProgram, QemuProgram)),
        (Emulation(vector_length=256), None, (None, None)),
    ],
)
def test_choice(
    emulation: Emulation,
    qemu: Qemu | None,
    expected: tuple[type | None, type | None],
    static: Path,
    dynamic: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(find, "find_qemu", lambda _: qemu)
    for path, kind in zip((static, dynamic), expected, strict=True):
        if kind is None:
            with pytest.raises(UserError, match=r"apt-get install qemu-user, or make qemu"):
                emulation.program(path, [])
        else:
            assert type(emulation.program(path, [])) is kind


def test_a_file_without_permission_to_execute(static: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(find, "find_qemu", lambda _: NEW)
    static.chmod(0o644)
    assert type(Emulation().program(static, [])) is Program
    with pytest.raises(UserError, match=r"must be executable: chmod \+x"):
        Emulation(emulator="qemu").program(static, [])


def test_the_sysroot_is_a_folder(static: Path) -> None:
    for sysroot in (static, static / "x"):
        with pytest.raises(UserError, match=f"^the sysroot must be a folder, not {sysroot}$"):
            QemuProgram(NEW, static, sysroot=str(sysroot))


def test_invalid_arguments() -> None:
    with pytest.raises(ValueError, match="emulator must be auto, qemu or unicorn, not 'gem5'"):
        Emulation(emulator="gem5")
    with pytest.raises(ValueError, match="must not be set with the emulator unicorn"):
        Emulation(emulator="unicorn", sysroot="/usr")
    with pytest.raises(ValueError, match="vector_length must be 128, 256 or 512, not 1024"):
        Emulation(vector_length=1024)
    with pytest.raises(TypeError, match="follow"):
        Emulation(follow=1)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--emulator", "unicorn", "--follow"], "--follow must not come with --emulator unicorn"),
        (["--emulator", "unicorn", "--sysroot", "/"], "--sysroot must not come with --emulator unicorn"),
        (["--emulator", "unicorn", "--vector-length", "256"], "--vector-length must not come with --emulator unicorn"),
        (["--vector-length", "0x80"], "--vector-length must be 128, 256 or 512, not 0x80"),
        (["--qemu", "/bin/true"], "/bin/true must be qemu-aarch64 of QEMU"),
        (["--emulator", "qemu"], "no QEMU was found that accepts plugins: apt-get install qemu-user, or make qemu"),
    ],
)
def test_invalid_options(
    options: list[str], sentence: str, static: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["profile", *options, "-o", str(tmp_path / "perf.data"), str(static)]) == 125
    assert capsys.readouterr().err.startswith(f"spurtle: {sentence}")


def test_unsupported_instructions_name_qemu(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = write_elf(tmp_path / "program", [0xA5400000])
    assert main(["profile", "-o", str(tmp_path / "perf.data"), str(program)]) == 132
    assert "spurtle: --emulator qemu supports more programs" in capsys.readouterr().err
