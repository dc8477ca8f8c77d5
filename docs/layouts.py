"""Figure of the record layouts of the named configurations: `docs/reference/layouts.svg`.

It is drawn from `spurtle.config.record_layouts`.
"""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from spurtle.config import CONFIGS, SPUConfig
from spurtle.config.record_layouts import LAST, Packet, RecordField

__all__ = ["FILE", "Cell", "cells", "picture"]

FILE = Path(__file__).parent / "reference" / "layouts.svg"


class Cell(NamedTuple):
    """Bytes of a record that belong to one packet, or to one of several packets that exclude each other.

    Members
    -------
    packet : Packet or None
        The packet, or None for zero bytes.
    offset, size : int
        Byte offset in the longest record, and number of bytes.
    elastic : bool
        Whether the bytes are left out if the packet is absent.
    run, runs : int
        Number of the run of packets that has these bytes, and how many runs there are.
    """

    packet: Packet | None
    offset: int
    size: int
    elastic: bool
    run: int = 0
    runs: int = 1


def cells(config: SPUConfig) -> Iterator[Cell]:
    """Yield the cells of the longest record of `config` in order of their offsets, run by run."""
    layout, sizes = config.layout, config.packet_bytes
    offset = 0
    for field in layout.fields:
        yield from _record_field(config, field, offset)
        offset += field.size(sizes)
    end = layout.longest(sizes) if layout.packed else layout.max_size
    last = sizes[Packet.TIMESTAMP]
    padding = end - offset - last
    first, second = (offset, offset + last) if layout.padding_last else (offset + padding, offset)
    yield Cell(Packet.TIMESTAMP, first, last, elastic=False, run=0, runs=2)
    # A record that ends with End has the same size, except in a packed layout.
    filler = 0 if layout.packed else last - sizes[Packet.END]
    zeros, short = (first + last - filler, first) if layout.padding_last else (first, first + filler)
    if filler:
        yield Cell(None, zeros, filler, elastic=False, run=1, runs=2)
    yield Cell(Packet.END, short, last - filler, elastic=False, run=1, runs=2)
    if padding:
        yield Cell(None, second, padding, elastic=False)


def _record_field(config: SPUConfig, field: RecordField, first: int) -> Iterator[Cell]:
    sizes, size = config.packet_bytes, field.size(config.packet_bytes)
    for number, run in enumerate(field.runs):
        offset = first
        for packet in run:
            yield Cell(packet, offset, sizes[packet], field.elastic, number, len(field.runs))
            offset += sizes[packet]
        if offset < first + size:
            yield Cell(None, offset, first + size - offset, field.elastic, number, len(field.runs))


_WORDS = {
    Packet.TARGET: "TGT",
    Packet.PREVIOUS_TARGET: "PBT",
    Packet.IMP_ADDRESS: "IMP",
    Packet.CONTEXT_EL1: "CTX1",
    Packet.CONTEXT_EL2: "CTX2",
    Packet.OPERATION: "OP",
    Packet.EVENTS: "EV",
    Packet.TOTAL: "TOT",
    Packet.ISSUE: "ISS",
    Packet.TRANSLATION: "XLT",
    Packet.ALTERNATE_ISSUE: "ALT",
    Packet.IMP_COUNTER: "IMP",
    Packet.DATA_SOURCE: "DS",
    Packet.TIMESTAMP: "TS",
}
_KINDS = {
    "address": (Packet.PC, Packet.TARGET, Packet.VA, Packet.PA, Packet.PREVIOUS_TARGET, Packet.IMP_ADDRESS),
    "counter": (Packet.TOTAL, Packet.ISSUE, Packet.TRANSLATION, Packet.ALTERNATE_ISSUE, Packet.IMP_COUNTER),
    "context": (Packet.CONTEXT_EL1, Packet.CONTEXT_EL2),
    "operation": (Packet.OPERATION,),
    "events": (Packet.EVENTS,),
    "source": (Packet.DATA_SOURCE,),
    "last": LAST,
}
_KIND = {packet: kind for kind, packets in _KINDS.items() for packet in packets}
_LEGEND = {
    "address": "Address",
    "counter": "Counter",
    "context": "Context",
    "operation": "Operation Type",
    "events": "Events",
    "source": "Data Source",
    "last": "Timestamp or End",
    "zero": "zero bytes",
}

_SCALE, _LEFT, _TOP, _PITCH, _HEIGHT = 8, 16, 46, 74, 30
_WIDTH = 2 * _LEFT + 128 * _SCALE
_FRAME = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">
  <style>
    text {{ font: 9.5px Helvetica, Arial, sans-serif; fill: #16202b; text-anchor: middle }}
    .paper {{ fill: #fff }}
    .name, .note, .at {{ fill: #333; text-anchor: start }}
    .name {{ font-size: 13px; font-weight: bold }}
    .note {{ font-size: 12px }}
    .at {{ font-size: 8px }}
    rect {{ stroke: #16202b; stroke-width: 0.8 }}
    .paper {{ stroke: none }}
    .elastic {{ stroke-dasharray: 3 2 }}
    .address {{ fill: #9ec5ea }}
    .counter {{ fill: #a8d8a0 }}
    .context {{ fill: #cdb6e6 }}
    .operation {{ fill: #f5bd85 }}
    .events {{ fill: #f3e08a }}
    .source {{ fill: #94d6d0 }}
    .last {{ fill: #eda9a9 }}
    .zero {{ fill: #dcdcdc }}
    @media (prefers-color-scheme: dark) {{
      .paper {{ fill: #14181d }}
      .name, .note, .at {{ fill: #d8dde3 }}
      .zero {{ fill: #8a9199 }}
    }}
  </style>
  <rect class="paper" width="{width}" height="{height}"/>
{content}
</svg>
"""


def picture() -> str:
    """Return the SVG of the records of all named configurations."""
    lines = list(_legend())
    for number, config in enumerate(CONFIGS.values()):
        lines += _record(config, _TOP + number * _PITCH)
    height = _TOP + len(CONFIGS) * _PITCH + 2
    return _FRAME.format(width=_WIDTH, height=height, content="\n".join(f"  {line}" for line in lines))


def _legend() -> Iterator[str]:
    x = _LEFT
    for kind, word in _LEGEND.items():
        yield f'<rect class="{kind}" x="{x}" y="12" width="14" height="12"/>'
        yield f'<text class="note" x="{x + 19}" y="22">{word}</text>'
        x += 42 + 7 * len(word)
    yield f'<rect class="zero elastic" x="{x}" y="12" width="14" height="12"/>'
    yield f'<text class="note" x="{x + 19}" y="22">left out if absent</text>'


def _record(config: SPUConfig, top: int) -> Iterator[str]:
    name = f'<tspan class="name">{config.name}</tspan>'
    yield f'<text class="note" x="{_LEFT}" y="{top + 12}">{name} {_note(config)}</text>'
    found = list(cells(config))
    for cell in found:
        yield from _cell(cell, top + 19)
    starts = sorted({cell.offset for cell in found if cell.packet is not Packet.END or config.layout.packed})
    starts.append(max(cell.offset + cell.size for cell in found))
    below = top + 19 + _HEIGHT + 9
    for offset, following in pairwise([*starts, starts[-1] + 4]):
        # The numbers of adjacent bytes would overlap: only one of them is drawn.
        if following - offset > 1:
            yield f'<text class="at" x="{_LEFT + _SCALE * offset}" y="{below}">{offset}</text>'


def _note(config: SPUConfig) -> str:
    layout = config.layout
    if not layout.packed:
        return f"{layout.max_size} bytes"
    where = "after" if layout.padding_last else "before"
    return (
        f"at most {layout.longest(config.packet_bytes)} bytes; zero bytes {where} Timestamp or End make each record a "
        f"multiple of {layout.align}"
    )


def _cell(cell: Cell, top: int) -> Iterator[str]:
    kind = _KIND[cell.packet] if cell.packet else "zero"
    height = _HEIGHT / cell.runs
    x, y, width = _LEFT + _SCALE * cell.offset, top + cell.run * height, _SCALE * cell.size
    elastic = " elastic" if cell.elastic else ""
    yield f'<rect class="{kind}{elastic}" x="{x}" y="{y:g}" width="{width}" height="{height:g}"/>'
    word = _WORDS.get(cell.packet, cell.packet.value) if cell.packet else ""
    if 6 * len(word) <= width + 2:
        yield f'<text x="{x + width / 2:g}" y="{y + height / 2 + 3.5:g}">{word}</text>'
