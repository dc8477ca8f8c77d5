"""Test that each event, register, packet, named configuration and board is complete.

A failure names the files in which an entry is missing.
"""

import json

from amaranth.back import rtlil

from boards.board import BOARDS
from configurations import FOR_RECORDS
from spurtle.arch import REGISTERS
from spurtle.arch.events import EVENTS
from spurtle.config import CONFIGS
from spurtle.config.record_layouts import Packet
from spurtle.gateware.record import RecordBuilder
from spurtle.gateware.registers import RegisterFile
from spurtle_sim.model.registers import Registers
from tests.support.golden_ports import golden_file
from tests.support.paths import ROOT


def test_events() -> None:
    complete = CONFIGS["v1p4"].events
    missing = [row.event.name for row in EVENTS if row.event not in complete]
    assert [f"rtl/spurtle/config/named.py: {name} among the events of v1p4" for name in missing] == []


def test_registers() -> None:
    missing = [
        f"{page}: `python -m docs` writes it"
        for page in (f"docs/reference/registers/{register.name}.md" for register in REGISTERS)
        if not (ROOT / page).exists()
    ]
    written = [register.name for register in REGISTERS if not register.read_only]
    missing += [
        f"sim/spurtle_sim/model/registers.py: Registers.{name}" for name in written if not hasattr(Registers, name)
    ]
    component = RegisterFile(CONFIGS["v1p4"])
    for name in written:
        port = name.lower().removesuffix("_el1").removeprefix("imp_")
        if port not in component.signature.members:
            missing.append(f"rtl/spurtle/gateware/registers.py: RegisterFile.{port}, a port for the value")
    assert not missing, "\n".join(missing)
    assert rtlil.convert(component)


def test_packets() -> None:
    everything = FOR_RECORDS["everything"]
    missing = [
        f"configurations.py: a field for {packet} in `everything`"
        for packet in {*Packet} - {*everything.layout.packets}
    ]
    text = rtlil.convert(RecordBuilder(everything))
    missing += [
        f"rtl/spurtle/gateware/record.py: the content of {packet}"
        for packet in everything.layout.packets
        if f"packet_{packet.name.lower()}" not in text
    ]
    assert not missing, "\n".join(missing)


def test_named_configurations() -> None:
    measured = json.loads((ROOT / "rtl/spurtle/config/figures.json").read_text())
    table = (ROOT / "docs/reference/configurations.md").read_text()
    missing = [
        f"{golden_file(name).relative_to(ROOT)}: `python -m tests.support.golden_ports {name}` writes it"
        for name in CONFIGS
        if not golden_file(name).exists()
    ]
    missing += [
        f"rtl/spurtle/config/figures.json: `make bench` measures {name}" for name in CONFIGS if name not in measured
    ]
    page = "docs/reference/configurations.md"
    missing += [f"{page}: `python -m docs` adds {name}" for name in CONFIGS if name not in table]
    assert not missing, "\n".join(missing)


def test_boards() -> None:
    page = (ROOT / "docs/reference/boards.md").read_text()
    assert [f"docs/reference/boards.md: {name}" for name in BOARDS if name not in page] == []
    numbers = [board.number for board in BOARDS.values()]
    assert len({*numbers}) == len(numbers), "boards/board.py: the number of a board must be unique"
