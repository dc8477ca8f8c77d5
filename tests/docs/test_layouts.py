"""The figure of the record layouts is up to date, and agrees with the reference model."""

import pytest

from configurations import FEATURES
from docs.layouts import FILE, cells, picture
from spurtle.config import CONFIGS, SPUConfig
from spurtle.config.record_layouts import LAST, Packet
from spurtle_sim.model import records
from tests.support.tiers import configurations


def test_the_figure_is_up_to_date():
    assert FILE.read_text() == picture(), "`python -m docs` writes it"


@pytest.mark.parametrize("run", [0, 1])
@pytest.mark.parametrize("config", [*configurations(CONFIGS), FEATURES["minimal_padded_last"]])
def test_cells_match_the_packets_of_the_reference(config: SPUConfig, run: int):
    """Give each packet its own byte, in the first of several runs or in the second."""
    ends_short = run == 1 and config.layout.packed  # the figure does not show these records
    last = LAST[0 if ends_short else run]
    chosen = {packet for field in config.layout.fields for packet in field.runs[min(run, len(field.runs) - 1)]} | {last}
    byte = {packet: number for number, packet in enumerate(Packet, 1)}
    record = records.lay_out(config, [(one, bytes([byte[one]]) * config.packet_bytes[one]) for one in chosen])
    drawn = bytearray(b"\xff" * len(record))
    for cell in cells(config):
        shown = 0 if ends_short and cell.packet in LAST else run
        if cell.run == min(shown, cell.runs - 1):
            stretch = slice(cell.offset, cell.offset + cell.size)
            assert drawn[stretch] == b"\xff" * cell.size
            drawn[stretch] = bytes([byte[cell.packet] if cell.packet else 0]) * cell.size
    assert drawn == record
