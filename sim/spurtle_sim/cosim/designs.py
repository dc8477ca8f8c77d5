"""Designs of a configuration for the drivers in C++: the Verilog and the layouts of its ports."""

from collections.abc import Iterator
from typing import Any

from amaranth.hdl import Shape
from amaranth.lib import data

from spurtle.arch import PMSICR_EL1, PMSIRR_EL1, Register
from spurtle.config import SPUConfig
from spurtle.export import verilog
from spurtle.gateware.beat import beat_layout
from spurtle.gateware.sample import StartLayout
from spurtle.gateware.spu import RecordPath
from spurtle.interface.memory import BeatLayout, FaultLayout
from spurtle.interface.operation import LocationLayout, OperationLayout, VectorsLayout
from spurtle.interface.sampling import TakenBranchSignature
from spurtle.interface.sysreg import ACCESS_LATENCY

from ..model.operation import Facts
from ..native.header import array, constants, struct
from ..trace.dtypes import FINISH, RESPONSE, SELECTION, TIMED_OPERATION
from ..trace.vectors import LENGTH_UNIT, VECTORS
from .faults import memory_faults
from .gating import GatedVerilog, gate
from .layout import bit_fields, conditions, design_files, encodings, function, gated_inputs
from .pack import fault_bits, pe_bits, sample_words
from .structs import PE_STATE, counts

__all__ = ["gated", "on_each_edge", "record_path", "spu", "spu_with_fst", "spu_with_vcd"]


def spu(config: SPUConfig) -> dict[str, str]:
    """Return the files of the SPU for `spu.cpp`, by their names."""
    design = gated(config)
    return design_files(design.text, [*_declarations(config), gated_inputs(design.inputs)])


def spu_with_fst(config: SPUConfig) -> dict[str, str]:
    """Return the files of the SPU for `spu.cpp`, with waveforms in the format FST."""
    return design_files(verilog.spu(config).text, _declarations(config, WAVES_FST=True))


def spu_with_vcd(config: SPUConfig) -> dict[str, str]:
    """Return the files of the SPU for `spu.cpp`, with waveforms in the format VCD."""
    return design_files(verilog.spu(config).text, _declarations(config, WAVES_VCD=True))


def _declarations(config: SPUConfig, **waves: bool) -> list[str]:
    """Return the declarations of `layout.h` for `spu.cpp`."""
    beat = BeatLayout(config)
    operation = OperationLayout(config)
    structs = {
        **{"Operation": TIMED_OPERATION, "Selection": SELECTION, "Finish": FINISH, "Response": RESPONSE},
        **{"PEState": PE_STATE, "Counts": counts(config)},
    }
    numbers = {
        "BEAT_BYTES": config.bus_bytes,
        # A record that is aligned to less than a beat can begin within a beat and take one more.
        "MAX_BEATS": config.max_record_bytes // config.bus_bytes + (config.layout.align < config.bus_bytes),
        # The packer takes one cycle for each step. Packed records have at most one step for each eight bytes of their
        # maximum size.
        "PACKING_CYCLES": config.max_record_bytes // 8 if config.layout.packed else 0,
        "LANES": config.ops_per_cycle,
        "SLOTS": config.slots,
        "ANSWER_LATENCY": config.answer_latency,
        "ACCESS_LATENCY": ACCESS_LATENCY,
        "TAKEN_BRANCH_MASK": Facts(branch=1, taken=1, retired=1, exception=1).pack(),
        "TAKEN_BRANCH": Facts(branch=1, taken=1, retired=1).pack(),
    }
    fields = {
        "BEAT_ADDRESS": _field(beat, "address"),
        "BEAT_DATA": _field(beat, "data"),
        "BEAT_STROBE": _field(beat, "strobe"),
        "BEAT_LAST": _field(beat, "last"),
        "LOCATION_NS": _field(LocationLayout(config), "ns"),
        "FACTS": _field(operation, "facts"),
        "EVENTS": _field(operation, "events"),
        "PC": _field(operation, "pc"),
        "TARGET": _field(operation, "target", "address"),
        "TARGET_NS": _field(operation, "target", "ns"),
        "VA": _field(operation, "va"),
        "PA": _field(operation, "pa"),
        "PA_NS": _field(operation, "pa_ns"),
        "FAULT_WORD": _field(FaultLayout(config), "word"),
        "DATA_SOURCE": _optional_field(operation, "data_source"),
        **_register_fields(PMSICR_EL1, "COUNT", "ECOUNT"),
        **_register_fields(PMSIRR_EL1, "INTERVAL", "RND"),
    }
    features = {
        "EXTERNAL_ABORTS": config.external_aborts,
        "PBT": config.pbt,
        "RANDOM_DELAY": config.ernd,
        "SEVERAL_OUTSTANDING": config.outstanding > 1,
        "SEVERAL_SLOTS": config.slots > 1,
    }
    return [
        conditions({"WAVES_FST": False, "WAVES_VCD": False, **waves, **features}),
        *(struct(name, dtype) for name, dtype in structs.items()),
        constants("", "unsigned", numbers),
        array("FAULTS", "uint64_t", [fault_bits(config, 0, fault) for fault in (None, *memory_faults(config))]),
        bit_fields(fields),
        encodings((PMSICR_EL1, PMSIRR_EL1)),
        *_functions(config),
    ]


def record_path(config: SPUConfig) -> dict[str, str]:
    """Return the files of the record path for `record_path.cpp`, by their names."""
    beat = beat_layout(config)
    numbers = {
        "SAMPLE_WORDS": sample_words(config),
        "MAX_RECORD_BYTES": config.max_record_bytes,
        "BEAT_BYTES": config.bus_bytes,
        "ALIGN": config.layout.align,
    }
    fields = {
        "BEAT_DATA": _field(beat, "data"),
        "BEAT_LAST": _field(beat, "last"),
        "BEAT_END": _optional_field(beat, "end"),
    }
    text = verilog.generate(RecordPath(config), f"{config.module}_record_path").text
    return design_files(text, [constants("", "unsigned", numbers), bit_fields(fields)])


def on_each_edge(text: str) -> str:
    """Return Verilog in which each edge of the clock is a cycle.

    A cycle then takes one evaluation of the model instead of two, for the rising and the falling edge. Outputs that are
    read before the edge must come from registers only.
    """
    return text.replace("posedge clk", "edge clk")


def gated(config: SPUConfig) -> GatedVerilog:
    """Return the Verilog of the SPU in which each edge of the clock is a cycle, with a gated clock."""
    return gate(on_each_edge(verilog.spu(config).text), _field(StartLayout(config), "timestamp"))


def _functions(config: SPUConfig) -> Iterator[str]:
    """Yield the C++ functions for ports that not every configuration has."""
    slots = [f"spu.PORT_OF(sampling, slot, {lane})" for lane in range(config.ops_per_cycle)]
    answer = f"return {{{', '.join(slots) if config.slots > 1 else ''}}}"
    yield function("std::array<unsigned, LANES> slots_of_lanes(const design &spu)", [answer])
    destinations = "spu.PORT(sampling, destination)" if config.two_accesses else "0"
    yield function("uint64_t destinations(const design &spu)", [f"return {destinations}"])
    yield function("void set_pe(design &spu, const PEState &pe)", _state(config))
    feeds = [f"counts.feed_{event} += spu.PORT(pmu, sample_feed_{event})" for event in config.feed_events]
    yield function("void count_feeds(const design &spu, Counts &counts)", feeds)
    arguments = "[[maybe_unused]] uint32_t *operation, [[maybe_unused]] unsigned vectors"
    yield function(f"void put_vectors({arguments})", _vectors(config))


def _state(config: SPUConfig) -> Iterator[str]:
    """Yield C++ assignments to the ports for the state of the PE. `physical_count` changes in each cycle instead."""
    of_branch = TakenBranchSignature(config).members if config.pbt else ()
    for name, bits in pe_bits(config):
        value = f"pe.{name}"
        if bits is not None:
            value = " | ".join(f"({value} >> {bit} & 1) << {index}" for index, bit in enumerate(bits))
        if name != "physical_count":
            yield f"spu.PORT(pe, {name}) = {value}"
        if name in of_branch:
            yield f"spu.PORT(branch, {name}) = {value}"


def _vectors(config: SPUConfig) -> Iterator[str]:
    """Yield C++ statements that put a number of `trace.vectors` into the members of the operation."""
    operation = OperationLayout(config)
    for name, (first, width) in VECTORS.items() if config.scalable else ():
        if name in VectorsLayout(config).members:
            offset, bits = _field(operation, "vectors", name)
            unit = LENGTH_UNIT if name == "bits" else 1
            value = f"(vectors >> {first} & {(1 << width) - 1}) * {unit}"
            yield f"put_field(operation, {{{offset}, {bits}}}, {value})"


def _register_fields(register: Register, *names: str) -> dict[str, tuple[int, int]]:
    """Return offset and width of fields of a register in bits, each with a name such as `PMSICR_COUNT`."""
    prefix = register.name.removesuffix("_EL1")
    return {f"{prefix}_{name}": (register.fields[name].lsb, register.fields[name].width) for name in names}


def _field(layout: data.Layout, *path: str) -> tuple[int, int]:
    """Return offset and width of a field in bits."""
    offset, shape = 0, layout
    for name in path:
        field: Any = data.Layout.cast(shape)[name]
        offset, shape = offset + field.offset, field.shape
    return offset, Shape.cast(shape).width


def _optional_field(layout: data.StructLayout, name: str) -> tuple[int, int]:
    """Return offset and width of a field, both 0 in a configuration without it."""
    return _field(layout, name) if name in layout.members else (0, 0)
