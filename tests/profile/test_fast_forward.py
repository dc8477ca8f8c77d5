"""Option --fast-forward: the files equal those of a complete simulation."""

import re
from pathlib import Path

import pytest

from spurtle.config import CONFIGS
from spurtle.support.errors import PROFILE_FAILED
from spurtle_sim.cli import main
from spurtle_sim.cosim.waves import WaveFile
from spurtle_sim.profile.extra import ExtraFiles
from spurtle_sim.profile.run import run_profile
from tests.support.elf import EXIT, write_elf
from tests.support.paths import WORKLOADS
from tests.support.tiers import tiers

LOOP = (0x529FFFE2, 0x71000442, 0x54FFFFE1)  # mov w2, #0xffff; LOOP: subs w2, w2, #1; b.ne LOOP


def profile(output: Path, config: str, program: Path, *options: str) -> list[bytes]:
    """Profile a program. Return its files."""
    output.parent.mkdir()
    arguments = ["--config", config, "--jitter", "--emulator", "unicorn", *options, "-o", str(output), str(program)]
    assert main(["profile", *arguments]) == 0
    return [output.with_name(output.name + suffix).read_bytes() for suffix in ("", ".spe", ".exact.json")]


@pytest.mark.parametrize(
    ("config", "name"),
    tiers(fast=[("v1p4", "loop")], full=[("v1p4", "sort"), ("v1p4", "chase"), ("neoverse_n1", "simd")]),
)
def test_the_files_are_those_of_a_complete_simulation(
    config: str, name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """`v1p4` has eight lanes, several slots, previous branch targets and FEAT_SPE_ERnd."""
    program = write_elf(tmp_path / "loop", [*LOOP, *EXIT]) if name == "loop" else WORKLOADS / f"{name}.elf"
    options = ["--interval", "512", "--max-operations", "800000"]
    found: list[list[bytes]] = []
    for number, chosen in enumerate(([], ["--fast-forward"], ["--fast-forward", "--check"])):
        found.append(profile(tmp_path / str(number) / "perf.data", config, program, *options, *chosen))
        [interrupts] = re.findall(r"passed the filter, (\d+) interrupts?", capfd.readouterr().err)
        assert name == "loop" or int(interrupts), "the buffer becomes full"
    assert found[0] == found[1] == found[2]


def test_saved_operations_are_forwarded(tmp_path: Path) -> None:
    program = write_elf(tmp_path / "loop", [*LOOP, *EXIT])
    saved = tmp_path / "loop.parquet"
    plain = profile(tmp_path / "plain" / "perf.data", "v1p4", program, "--save-ops", str(saved))
    output = tmp_path / "perf.data"
    options = ["--jitter", "--config", "v1p4", "--fast-forward", "-o", str(output), "--ops", str(saved)]
    assert main(["profile", *options]) == 0
    assert Path(f"{output}.spe").read_bytes() == plain[1]


def test_waveforms_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = write_elf(tmp_path / "program", [*EXIT])
    waves = tmp_path / "waves.vcd"
    arguments = ["profile", "--fast-forward", "--waves", str(waves), "-o", str(tmp_path / "perf.data"), str(program)]
    assert main(arguments) == PROFILE_FAILED
    error = capsys.readouterr().err
    assert error == "spurtle: --fast-forward must not come with --waves, which shows the complete simulation\n"
    extra = ExtraFiles(waves=WaveFile(path=waves, first=1, last=1))
    with pytest.raises(ValueError, match="fast_forward must be False with waves"):
        run_profile(CONFIGS["minimal"], program, extra=extra, fast_forward=True, output=str(tmp_path / "perf.data"))
    assert [*tmp_path.iterdir()] == [program]
