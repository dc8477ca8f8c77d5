"""Compiled simulation of complete boards, with the host driver at the other end of a pseudo-terminal."""

import ast
import os
import re
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from boards.board import BOARDS, Board
from boards.host import BoardDriver, Link, LinkError, open_port
from boards.host.__main__ import main
from boards.protocol import CHUNK_BYTES, BoardRegister
from boards.riscv import load
from boards.simulate import Simulation
from boards.simulate import main as simulate
from boards.source import board_process
from spurtle import arch
from spurtle.config import CONFIGS
from spurtle_sim.profile.options import Sampling
from spurtle_sim.records.decode import decode_records
from tests.support.board_bench import CompiledBoard, Noise, NoisyPort
from tests.support.paths import ROOT
from tests.support.seeds import SEED
from tests.support.tiers import tiers

DIVISOR = 4
"""Clock cycles of a bit, for all boards except `hx8k`, which is tested with its own."""

DOCUMENT = ROOT / "docs" / "howto" / "boards.md"

HALVES = 6

ADDRESS = (1 << 56) - 1
"""Mask of the address in the payload of an Address packet."""

SIMULATED = tiers(fast=[BOARDS["hx8k"]], full=[BOARDS["ulx3s_picorv32"]], long=BOARDS.values())
"""A board with a replay, a board with the soft core, and all others, whose clocks differ."""


@pytest.fixture(scope="module", params=SIMULATED, ids=lambda board: board.name)
def board(request: pytest.FixtureRequest) -> Board:
    return request.param


@pytest.fixture(scope="module")
def simulation(board: Board) -> Iterator[Simulation]:
    with Simulation(board, None if board.name == "hx8k" else DIVISOR) as running:
        yield running


@pytest.fixture
def link(board: Board, simulation: Simulation) -> Link:
    return Link(open_port(simulation.port, board.baud))


def wait_until(done: Callable[[], bool]) -> None:
    """Wait until `done` returns True; fail after two minutes."""
    deadline = time.monotonic() + 120
    while not done():
        assert time.monotonic() < deadline, "the condition is not met after two minutes"


def fill(driver: BoardDriver, halves: int) -> None:
    """Serve interrupts until their number is `halves`."""

    def filled() -> bool:
        driver.serve()
        return driver.interrupts >= halves

    wait_until(filled)


def profiled(board: Board, target: Link | CompiledBoard, halves: int = HALVES) -> bytes:
    """Return the records that fill the given number of halves."""
    driver = BoardDriver(board, target, Sampling(interval=256))
    driver.start()
    fill(driver, halves)
    return bytes(driver.data)


def test_first_profile_after_reset(board: Board, link: Link) -> None:
    """Records of an excerpt equal the records of the compiled SPU. Records of the soft core name its functions."""
    assert link.board == board.number
    data = profiled(board, link)
    link.write(BoardRegister.CONTROL, 0)
    assert len(data) == HALVES * board.half_bytes
    assert (link.damaged, link.resent, link.lost) == (0, 0, 0)
    if board.operations:
        assert data == profiled(board, CompiledBoard(board))
        return
    functions = {name: addresses for name, addresses in load().functions.items() if addresses}
    pcs = [record.addresses[0] & ADDRESS for record in decode_records(data)]
    sampled = Counter(name for pc in pcs for name, addresses in functions.items() if pc in addresses)
    assert sum(sampled.values()) == len(pcs)
    assert [name for name, _ in sampled.most_common(2)] == ["crc", "multiply"]


@pytest.mark.full
def test_no_record_is_lost_on_a_noisy_line(board: Board, simulation: Simulation) -> None:
    """Damaged frames are fetched again until all are intact."""
    link = Link(NoisyPort(open_port(simulation.port, board.baud), Noise(SEED, lost=4, corrupted=4)), timeout=0.5)
    driver = BoardDriver(board, link, Sampling(interval=256))
    driver.start()
    fill(driver, 3)
    driver.stop()
    records = list(decode_records(bytes(driver.data)))
    assert link.damaged > 0
    assert link.resent > 0
    assert link.lost == 0
    assert all(record.complete and not record.problems for record in records)
    assert len(records) == driver.counts()["filtrate"]


def test_operations_that_are_not_sampled_are_counted(board: Board, link: Link) -> None:
    for keep_running in (False, True):
        driver = BoardDriver(board, link, Sampling(interval=256), keep_running=keep_running)
        driver.start()
        fill(driver, 3)
        driver.stop()
        counts = driver.counts()
        records = len(driver.data) // CONFIGS[board.config].max_record_bytes
        assert records == counts["filtrate"]
        assert counts["pop"] // 257 - 4 <= counts["feed"] + counts["collision"] <= counts["pop"] // 257 + 1
        unobserved = counts["operations"] - counts["pop"]
        # With waiting, one operation passes at each interrupt just after profiling is disabled. One more interrupt may
        # be pending.
        assert unobserved > 100 if keep_running else unobserved <= driver.interrupts + 1


def test_register_accesses(link: Link) -> None:
    link.write(BoardRegister.CONTROL, 0)
    link.write(arch.PMSIRR_EL1, 0x1234_5601)
    assert link.read(arch.PMSIRR_EL1) == 0x1234_5601
    with pytest.raises(LinkError, match=r"^READ of PMSNEVFR_EL1 is UNDEFINED at the current Exception level$"):
        link.read(arch.PMSNEVFR_EL1)
    count = link.read(BoardRegister.POP)
    link.write(BoardRegister.POP, count + 77)
    assert link.read(BoardRegister.POP) == count
    assert link.read(BoardRegister.CONTROL) == 0
    link.write(BoardRegister.CONTROL, 0b110)
    assert link.read(BoardRegister.CONTROL) == 0b110
    # While the program runs, the PE is at EL0, where the registers are UNDEFINED.
    link.write(arch.PMSCR_EL1, 0)
    link.write(BoardRegister.CONTROL, 0b11)
    with pytest.raises(LinkError, match=r"^WRITE of PMSCR_EL1 is UNDEFINED at the current Exception level$"):
        link.write(arch.PMSCR_EL1, 0)
    link.write(BoardRegister.CONTROL, 0)


def test_write_with_the_tag_of_the_previous_command_is_not_executed(link: Link) -> None:
    """A host repeats a WRITE without an answer, which must not be executed twice."""
    link.write(arch.PMSIRR_EL1, 0x100)
    link.write(arch.PMSIRR_EL1, 0x200)
    link._tag -= 1  # pyright: ignore[reportPrivateUsage]
    link.write(arch.PMSIRR_EL1, 0x300)
    assert link.read(arch.PMSIRR_EL1) == 0x200


def test_fetch_of_several_chunks(board: Board, link: Link) -> None:
    driver = BoardDriver(board, link, Sampling(interval=256))
    driver.start()
    fill(driver, 1)
    driver.stop()
    half = bytes(driver.data[: board.half_bytes])
    assert link.fetch(0, board.half_bytes) == half
    assert link.fetch(3, CHUNK_BYTES + 2) == half[3 : CHUNK_BYTES + 5]
    assert link.fetch(70, 0) == b""


def test_unknown_register_is_refused(link: Link, monkeypatch: pytest.MonkeyPatch) -> None:
    class Unknown(int):
        name = "IMPOSSIBLE"

    monkeypatch.setattr("boards.host.link.BoardRegister", Unknown)
    with pytest.raises(LinkError, match=r"^READ of IMPOSSIBLE is unknown to the board$"):
        link.read(Unknown(len(BoardRegister)))  # pyright: ignore[reportArgumentType]


def test_button_starts_the_program(board: Board, simulation: Simulation, link: Link) -> None:
    driver = BoardDriver(board, link, Sampling(interval=256))
    before = driver.counts()["operations"]
    simulation.press(1)
    assert not driver.started, "the button is not armed"
    driver.arm()
    wait_until(lambda: driver.started)
    simulation.press(0)
    driver.stop()
    assert driver.counts()["operations"] > before


def test_leds(board: Board, simulation: Simulation, link: Link) -> None:
    driver = BoardDriver(board, link, Sampling(interval=256))
    simulation.read_leds()
    assert simulation.read_leds() == set()
    driver.start()
    wait_until(lambda: simulation.read_leds() == {"full"})  # the program waits
    link.read(BoardRegister.STATUS)
    assert simulation.read_leds() == {"full", "sending"}
    driver.serve()
    assert simulation.read_leds() - {"full"} == {"running", "sending"}
    driver.stop()
    simulation.read_leds()
    assert simulation.read_leds() <= {"full"}  # the buffer may have become full again before the program stopped
    assert driver.counts()["collision"] == 0


def test_command_writes_records(
    board: Board, simulation: Simulation, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out.data"
    assert main([simulation.port, "--records", "100", "--interval", "256", "-o", str(output)]) == 0
    printed = capsys.readouterr().err
    records = list(decode_records(Path(f"{output}.spe").read_bytes()))
    assert len(records) >= 100
    assert f"{board.name}: {board.title}, {board.config}" in printed
    assert re.search(rf"^{len(records):,} records in ", printed, re.MULTILINE)
    content = output.read_bytes()
    assert content.startswith(b"PERFILE2")
    assert str(board_process(board).path).encode() in content


def test_received_records_are_written_if_the_port_fails(
    board: Board, simulation: Simulation, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    class Unplugged:
        """Port that fails after a number of bytes."""

        def __init__(self, port: Any, remaining: int) -> None:
            self._port = port
            self._remaining = remaining
            self.write = port.write

        @property
        def in_waiting(self) -> int:
            return self._port.in_waiting

        def read(self, size: int = 1) -> bytes:
            octets = self._port.read(size)
            self._remaining -= len(octets)
            if self._remaining < 0:
                raise OSError("device reports readiness to read but returned no data")
            return octets

    def open_unplugged(name: str, baud: int) -> Any:
        return Unplugged(open_port(name, baud), 3 * board.half_bytes)

    monkeypatch.setattr("boards.host.__main__.open_port", open_unplugged)
    output = tmp_path / "out.data"
    assert main([simulation.port, "--interval", "256", "-o", str(output)]) == 1
    assert capsys.readouterr().err.splitlines()[-1] == (
        "boards.host: the serial port cannot be read: device reports readiness to read but returned no data"
    )
    data = Path(f"{output}.spe").read_bytes()
    assert 1 <= len(data) // board.half_bytes <= 2
    assert all(record.complete for record in decode_records(data))


def test_reset_of_the_board_is_reported(board: Board, link: Link) -> None:
    driver = BoardDriver(board, link, Sampling(interval=256))
    link.write(arch.PMBPTR_EL1, 0)
    message = r"^PMBPTR_EL1 is outside of the current half of the buffer: the board has been reset$"
    with pytest.raises(LinkError, match=message):
        driver.stop()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_stops_the_command_without_loss(
    number: int,
    board: Board,
    simulation: Simulation,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: Any,
) -> None:
    serve = BoardDriver.serve
    sent: list[int] = []

    def interrupted(driver: BoardDriver) -> bool:
        if not sent:
            sent.append(number)
            os.kill(os.getpid(), number)
        return serve(driver)

    monkeypatch.setattr(BoardDriver, "serve", interrupted)
    output = tmp_path / "out.data"
    assert main([simulation.port, "--interval", "256", "-o", str(output)]) == 0
    records = len(list(decode_records(Path(f"{output}.spe").read_bytes())))
    assert f"{records:,} passed the filter" in capsys.readouterr().err


def test_documented_example(board: Board, simulation: Simulation, capsys: pytest.CaptureFixture[str]) -> None:
    [example] = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    exec(example.replace("ulx3s", board.name).replace("/dev/ttyUSB0", simulation.port), {})
    printed = re.fullmatch(r"(\{.*\}) (\d+)\n", capsys.readouterr().out)
    assert printed is not None
    counts, size = printed.groups()
    assert int(size) == ast.literal_eval(counts)["filtrate"] * CONFIGS[board.config].max_record_bytes > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--records", "0"), "--records must be a number of at least 1, not 0"),
        (("--baud", "x"), "--baud must be a number of at least 1, not x"),
        (("--interval", "100"), "--interval must be a multiple of 256 from 256 to 2**32 - 256, not 100"),
        (("-o", "/nowhere/x"), "cannot write /nowhere/x: No such file or directory"),
    ],
)
def test_invalid_arguments_are_refused(
    simulation: Simulation, arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main([simulation.port, "-o", str(tmp_path / "x"), *arguments]) == 2
    assert capsys.readouterr().err == f"boards.host: {message}\n"
    assert not list(tmp_path.iterdir())


def test_absent_button_is_refused(
    board: Board, simulation: Simulation, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    if board.has_button:
        pytest.skip(f"{board.name} has a button")
    assert main([simulation.port, "--button", "-o", str(tmp_path / "x")]) == 2
    message = f"boards.host: --button must not be used with {board.name}, which has no button\n"
    assert capsys.readouterr().err == message


def test_absent_port_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["/nowhere/tty", "-o", str(tmp_path / "x")]) == 2
    message = "boards.host: cannot open the serial port '/nowhere/tty': No such file or directory\n"
    assert capsys.readouterr().err == message


def test_special_output_file_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    output = tmp_path / "fifo"
    os.mkfifo(output)
    assert main(["/nowhere/tty", "-o", str(output)]) == 2
    message = f"boards.host: cannot write {output}: it must be a regular file, not a special one\n"
    assert capsys.readouterr().err == message
    assert output.is_fifo()


@pytest.mark.parametrize("value", ["\u0661", "0", "-1", "9" * 5000])
def test_invalid_numbers_are_refused(value: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["/nowhere/tty", f"--records={value}"]) == 2
    assert capsys.readouterr().err.startswith("boards.host: --records must be a number of at least 1, not ")


@pytest.mark.full
@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_ends_the_simulation(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    enter = Simulation.__enter__

    def entered(simulation: Simulation) -> Simulation:
        threading.Timer(2, os.kill, (os.getpid(), signal.SIGINT)).start()
        return enter(simulation)

    monkeypatch.setattr(Simulation, "__enter__", entered)
    assert simulate(["hx8k"]) == 0
    first, following, _, last = capsys.readouterr().out.splitlines()
    port = re.fullmatch(r"hx8k is at (/dev/\S+); Ctrl-C ends it", first)
    assert port is not None
    assert following == f"next: python -m boards.host {port[1]}"
    passed = re.fullmatch(r"([\d,]+) cycles: (\d+\.\d\d) s of the board", last)
    assert passed is not None
    cycles = int(passed[1].replace(",", ""))
    assert cycles > 0
    assert float(passed[2]) == pytest.approx(cycles / BOARDS["hx8k"].clock_hz, abs=0.005)


def test_unknown_board_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate(["nothing"]) == 2
    assert re.fullmatch(r"boards\.simulate: BOARD must be .* or .*, not 'nothing'\n", capsys.readouterr().err)
