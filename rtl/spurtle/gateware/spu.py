"""Statistical Profiling Unit: its components, connected."""

from amaranth import *
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out, connect, flipped

from .. import arch
from ..config import LFSR_ACCESS_RESET, LFSR_RESET, SPUConfig, check_config
from ..interface.members import when
from ..interface.memory import DrainSignature, WriteSignature
from ..interface.pe_state import PEStateSignature
from ..interface.pmu import PMUEventsSignature
from ..interface.sampling import FinishSignature, InFlightSignature, SamplingPointSignature, TakenBranchSignature
from ..interface.sysreg import SystemRegisterSignature
from .access_choice import AccessChoice
from .beat import beat_layout
from .buffer import ProfilingBuffer
from .completion import Completion
from .component import ConfiguredComponent
from .control import ProfilingControl
from .filter import Filter
from .inflight import InFlight
from .interval import IntervalCounter
from .lfsr import LFSR
from .previous_target import PreviousTarget
from .record import RecordBuilder, settling_cycles
from .register_access import port_name
from .registers import RegisterFile
from .sample import SampleLayout
from .serializer import Serializer

__all__ = ["SPU", "RecordPath"]

_FILTERING = (arch.PMSFCR_EL1, arch.PMSEVFR_EL1, arch.PMSNEVFR_EL1, arch.PMSLATFR_EL1, arch.PMSDSFR_EL1)
"""Registers that control the filters."""

_STABLE_CYCLES = 2
"""Cycles for which `Completion` has offered a sample before it requests the record."""


class RecordPath(ConfiguredComponent):
    """Path from a sample to the beats of its record: record construction and serializer.

    Members
    -------
    sample : In(stream of SampleLayout)
        Accepted when its record has been serialized and the buffer has `accepted` it. The payload must be stable from
        two cycles before `valid` on. A record with more `settling_cycles` is serialized later.
    beat : Out(stream of beat_layout)
    accepted : In(1)
        Strobe, after the first beat of the record became valid: the outcome of the record no longer depends on the
        sample.
    """

    proof_signals = ("serialized", "settled_*")

    def __init__(self, config: SPUConfig):
        check_config(config)
        super().__init__(
            config,
            {
                "sample": In(stream.Signature(SampleLayout(config))),
                "beat": Out(stream.Signature(beat_layout(config))),
                "accepted": In(1),
            },
        )

    def elaborate(self, platform):
        m = Module()

        m.submodules.record = record = RecordBuilder(self._config)
        m.submodules.serializer = serializer = Serializer(self._config)
        serialized = Signal()
        was_accepted = Signal()
        # A packer is ready late in its cycle.
        ready = serialized if self._config.layout.packed else serialized | serializer.i.ready
        # The sample stays until both are set: the serializer reads it, and `drop`, which belongs to it, is used until
        # the buffer accepts the record.
        m.d.comb += [
            record.sample.eq(self.sample.payload),
            serializer.i.payload.eq(record.packets),
            serializer.i.valid.eq(self.sample.valid & self._settled(m) & ~serialized),
            self.sample.ready.eq(ready & was_accepted),
        ]
        with m.If(self.sample.valid & self.sample.ready):
            m.d.sync += [serialized.eq(0), was_accepted.eq(0)]
        with m.Else():
            m.d.sync += [
                serialized.eq(serialized | (serializer.i.valid & serializer.i.ready)),
                was_accepted.eq(was_accepted | self.accepted),
            ]
        connect(m, serializer.o, flipped(self.beat))

        return m

    def _settled(self, m):
        """Return whether the packets of a valid sample are valid."""
        settled = C(1)
        for cycle in range(settling_cycles(self._config) - _STABLE_CYCLES):
            before, settled = settled, Signal(name=f"settled_{cycle}")
            m.d.sync += settled.eq(self.sample.valid & ~self.sample.ready & before)
        return settled


class SPU(ConfiguredComponent):
    """Statistical Profiling Unit of one PE.

    It has one clock domain, `sync`. The signature of a port describes what the port carries, and when.

    Members
    -------
    pe : In(PEStateSignature)
    sampling : In(SamplingPointSignature)
    in_flight : In(InFlightSignature)
    finish : In(FinishSignature)
    sysreg : In(SystemRegisterSignature)
    drain : In(DrainSignature)
    write : Out(WriteSignature)
    branch : In(TakenBranchSignature)
        Only with FEAT_SPE_PBT.
    pmu : Out(PMUEventsSignature)
    pmbirq : Out(1)
        Profiling Buffer management interrupt, a level: PMBSR_EL1.S.
    """

    def __init__(self, config: SPUConfig):
        check_config(config)
        super().__init__(
            config,
            {
                "pe": In(PEStateSignature(config)),
                "sampling": In(SamplingPointSignature(config)),
                "in_flight": In(InFlightSignature(config)),
                "finish": In(FinishSignature(config)),
                **when(config.pbt, branch=In(TakenBranchSignature(config))),
                "sysreg": In(SystemRegisterSignature()),
                "drain": In(DrainSignature()),
                "write": Out(WriteSignature(config)),
                "pmu": Out(PMUEventsSignature(config)),
                "pmbirq": Out(1),
            },
        )

    def elaborate(self, platform):
        m = Module()

        m.submodules.registers = registers = RegisterFile(self._config)
        m.submodules.control = control = ProfilingControl(self._config)
        m.submodules.interval_counter = interval = IntervalCounter(self._config)
        # One random number is used per interval, and an interval has at least 256 operations.
        # With one lane, a draw depends on the enable of profiling in the same cycle.
        one_lane = self._config.ops_per_cycle == 1
        m.submodules.lfsr = lfsr = LFSR(bits=8, draws=1, reset=LFSR_RESET, late_draw=one_lane)
        m.submodules.inflight = inflight = InFlight(self._config)
        m.submodules.completion = completion = Completion(self._config)
        m.submodules.filter = filter_ = Filter(self._config)
        m.submodules.record_path = record_path = RecordPath(self._config)
        m.submodules.buffer = buffer = ProfilingBuffer(self._config)

        self._connect_sampling(m, registers, control, interval, lfsr, inflight, buffer)
        self._connect_record_path(m, registers, inflight, filter_, completion, record_path, buffer)
        new_owner = self._connect_features(m, registers, control, inflight)
        m.d.comb += buffer.new_owner.eq(new_owner)
        if self._config.access_bits:
            self._add_access_choice(m, interval, registers)
        if self._config.pbt:
            self._add_previous_target(m, control, inflight, new_owner)
        connect(m, flipped(self.pe), inflight.pe)
        connect(m, flipped(self.in_flight), inflight.in_flight)
        connect(m, flipped(self.finish), inflight.finish)
        connect(m, inflight.sample, completion.i)
        connect(m, completion.o, record_path.sample)
        connect(m, record_path.beat, buffer.i)
        connect(m, buffer.write, flipped(self.write))
        self._connect_registers(m, registers, interval, lfsr, buffer)
        m.d.comb += [
            self.pmbirq.eq(buffer.pmbsr.S),
            self.drain.done.eq(self.drain.request & ~inflight.pending & ~record_path.beat.valid & ~buffer.busy),
        ]
        self._report_events(m, registers, interval, inflight, completion, buffer)

        return m

    def _connect_sampling(self, m, registers, control, interval, lfsr, inflight, buffer):
        """Select operations while profiling is enabled, and allocate slots to them."""
        connect(m, flipped(self.pe), control.pe)
        m.d.comb += [
            control.pmscr.eq(registers.pmscr),
            control.running.eq(buffer.active),
            interval.operations.eq(self.sampling.valid),
            interval.enabled.eq(control.enabled),
            interval.interval.eq(registers.pmsirr.INTERVAL),
            interval.rnd.eq(registers.pmsirr.RND),
            interval.random.eq(lfsr.random[0]),
            lfsr.draw.eq(interval.draw),
            *(port.eq(selected) for port, selected in zip(inflight.selected, interval.selected, strict=True)),
            inflight.collect.eq(control.collect),
            inflight.running.eq(buffer.running),
            self.sampling.sampled.eq(inflight.sampled),
        ]

    def _connect_record_path(self, m, registers, inflight, filter_, completion, record_path, buffer):
        """Filter finished operations, and write the records of those that pass."""
        names = [port_name(register) for register in _FILTERING if register in self._config.registers]
        m.d.comb += [
            completion.drop.eq(inflight.drop),
            completion.discard.eq(registers.pmblimitr.FM == arch.FM.DISCARD),
            completion.rejected.eq(filter_.rejected),
            completion.feed.eq(filter_.feed),
            filter_.sample.eq(inflight.sample.payload),
            *(getattr(filter_, name).eq(getattr(registers, name)) for name in names),
            buffer.drop.eq(inflight.drop),
            record_path.accepted.eq(buffer.accepted),
            buffer.pmblimitr.eq(registers.pmblimitr),
            buffer.collision.eq(inflight.collisions != 0),
        ]

    def _connect_features(self, m, registers, control, inflight):
        """Connect the ports of several slots and of EL2. Return whether the Profiling Buffer has a new owner."""
        if self._config.slots > 1:
            m.d.comb += [port.eq(slot) for port, slot in zip(self.sampling.slot, inflight.slot, strict=True)]
        if self._config.el2:
            m.d.comb += [
                control.pmscr_el2.eq(registers.pmscr_el2),
                inflight.offset.eq(control.offset),
                inflight.subtract_offset.eq(control.subtract_offset),
            ]
        if not self._config.several_owners:
            return C(0)
        m.d.comb += registers.programmable.eq(control.programmable)
        return control.new_owner

    def _add_previous_target(self, m, control, inflight, new_owner):
        m.submodules.previous_target = previous_target = PreviousTarget(self._config)
        connect(m, flipped(self.branch), control.branch)
        connect(m, flipped(self.branch), previous_target.branch)
        m.d.comb += [
            previous_target.enabled.eq(control.branch_enabled),
            previous_target.new_owner.eq(new_owner),
            inflight.previous.eq(previous_target.previous),
        ]

    def _connect_registers(self, m, registers, interval, lfsr, buffer):
        """Connect the registers that are stored in the components that change them.

        The low half of IMP_PMSRNDR_EL1 is STATE. The high half, ACCESS, is zero unless an access is chosen.
        """
        connect(m, flipped(self.pe), registers.pe)
        connect(m, flipped(self.sysreg), registers.port)
        m.d.comb += [
            registers.pmsicr.eq(interval.pmsicr),
            interval.write.eq(registers.pmsicr_write),
            interval.wdata.eq(registers.wdata),
            registers.pmsrndr[:32].eq(lfsr.state),
            lfsr.write.eq(registers.pmsrndr_write),
            lfsr.wdata.eq(registers.wdata[:32]),
            registers.pmbptr.eq(buffer.pmbptr),
            buffer.pmbptr_write.eq(registers.pmbptr_write),
            registers.pmbsr.eq(buffer.pmbsr),
            buffer.pmbsr_write.eq(registers.pmbsr_write),
            buffer.pmblimitr_write.eq(registers.pmblimitr_write),
            buffer.wdata.eq(registers.wdata),
        ]

    def _report_events(self, m, registers, interval, inflight, completion, buffer):
        """Report PMU events.

        They are registered, so that no combinational path continues into the PMU.
        """
        m.d.sync += [
            self.pmu.sample_pop.eq(interval.population),
            self.pmu.sample_feed.eq(completion.fed),
            *(
                getattr(self.pmu, f"sample_feed_{event}").eq(fed)
                for event, fed in zip(self._config.feed_events, completion.fed_as, strict=True)
            ),
            self.pmu.sample_filtrate.eq(completion.filtrated),
            self.pmu.sample_collision.eq(inflight.collisions),
            self.pmu.sample_buffer_full.eq(buffer.full),
        ]
        if self._config.discard_mode:
            pmblimitr = registers.pmblimitr
            # PMBLIMITR_EL1.PMFZ is defined from FEAT_SPEv1p2 on, as Discard mode is.
            m.d.sync += self.pmu.freeze.eq(pmblimitr.PMFZ & pmblimitr.E & buffer.pmbsr.S)

    def _add_access_choice(self, m, interval, registers):
        """Add the choice of the sampled access.

        It has random numbers of its own, so that the interval counter does not depend on which operations are sampled.
        The state of their generator is the high half of IMP_PMSRNDR_EL1, ACCESS.
        """
        m.submodules.access_lfsr = lfsr = LFSR(
            bits=self._config.access_bits, draws=self._config.selections_per_cycle, reset=LFSR_ACCESS_RESET
        )
        m.submodules.access_choice = choice = AccessChoice(self._config)
        m.d.comb += [
            *(port.eq(selected) for port, selected in zip(choice.selected, interval.selected, strict=True)),
            *(port.eq(number) for port, number in zip(choice.random, lfsr.random, strict=True)),
            choice.pmsfcr.eq(registers.pmsfcr),
            lfsr.draw.eq(choice.draw),
            lfsr.write.eq(registers.pmsrndr_write),
            lfsr.wdata.eq(registers.wdata[32:]),
            registers.pmsrndr[32:].eq(lfsr.state),
        ]
        if self._config.two_accesses:
            m.d.comb += self.sampling.destination.eq(choice.destination)
        if self._config.scalable:
            m.d.comb += [port.eq(number) for port, number in zip(self.sampling.element, choice.element, strict=True)]
