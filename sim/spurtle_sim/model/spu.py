"""Reference model of the complete SPU, without timing.

The caller drives the model step by step: it determines which operations pass the sampling point, which selected
operations collide, and when sampled operations finish.

Ref: DDI0487 M.a, D17.
"""

from spurtle.arch import IMP_PMSRNDR_EL1, PMSICR_EL1, PMSIRR_EL1, Register
from spurtle.config import SPUConfig

from . import control, filtering, records, sampling
from .buffer import Buffer
from .control import PEState
from .operation import Location, Operation, Sample, Start
from .registers import Registers, find_register

__all__ = ["ReferenceSPU"]

# Masks and bit indices are computed once, because `count_operation` is called for each operation of a program.
_INTERVAL_LSB = PMSIRR_EL1.fields["INTERVAL"].lsb
_RND = PMSIRR_EL1.fields["RND"].mask
_COUNT = PMSICR_EL1.fields["COUNT"].mask
_ECOUNT_LSB = PMSICR_EL1.fields["ECOUNT"].lsb
_STATE = IMP_PMSRNDR_EL1.fields["STATE"].mask
_ACCESS_LSB = IMP_PMSRNDR_EL1.fields["ACCESS"].lsb

_KERNEL = PEState(el=1)


class ReferenceSPU:
    """Reference model of a Statistical Profiling Unit.

    Parameters
    ----------
    config : SPUConfig
        Configuration of the SPU.

    Attributes
    ----------
    registers : Registers
        System registers, by their architectural names.
    buffer : Buffer
        Profiling Buffer and the records written to it.
    previous_target : Location or None
        Target of the previous taken branch, if profiling was enabled where it was executed (D17.6.3.1).
    """

    def __init__(self, config: SPUConfig):
        self.config = config
        self.registers = Registers.after_reset(config)
        self.buffer = Buffer(config, self.registers)
        self._owner = control.owner(config, _KERNEL)
        self.previous_target: Location | None = None

    def write(self, register: str | Register, value: int) -> None:
        """Write a System register (MSR).

        Raises
        ------
        ValueError
            If the SPU has no register of that name.
        """
        self.registers.write(self.config, find_register(self.config, register), value)
        self.buffer.stop_if_full()

    def read(self, register: str | Register, pe: PEState = _KERNEL) -> int:
        """Return the value of a System register (MRS), read by default at EL1, which owns the Profiling Buffer.

        Raises
        ------
        ValueError
            If the SPU has no register of that name.
        """
        return self.registers.read(self.config, find_register(self.config, register), pe)

    def update_owner(self, pe: PEState) -> bool:
        """Update the owner of the Profiling Buffer, and return whether it has changed.

        Call this whenever the state of the PE changes. Before the first call Non-secure EL1 owns the buffer.

        A change of the owner clears the previous branch target. The caller must drop the operations in flight and the
        records that are not written yet.
        """
        owner = control.owner(self.config, pe)
        if owner == self._owner:
            return False
        self._owner = owner
        self.previous_target = None
        return True

    def pass_operation(self, pe: PEState) -> bool:
        """Pass an operation through the sampling point, and return whether it is selected.

        After an operation is selected call either `start` or `collide`.
        """
        return control.profiling_enabled(self.config, self.registers, pe) and self.count_operation()

    def count_operation(self, settings: Registers | None = None) -> bool:
        """Count one member of the sample population, and return whether it is selected.

        PMSIRR_EL1 and the random number are read from `settings`, or from the current registers if it is None.
        """
        registers = self.registers
        settings = settings or registers
        pmsicr, pmsirr = registers.PMSICR_EL1, settings.PMSIRR_EL1
        count, ecount, selected, drawn = sampling.advance(
            pmsicr & _COUNT,
            pmsicr >> _ECOUNT_LSB,
            interval=pmsirr >> _INTERVAL_LSB,
            rnd=pmsirr & _RND,
            random=sampling.random_byte(settings.IMP_PMSRNDR_EL1 & _STATE),
            ernd=self.config.ernd,
        )
        registers.PMSICR_EL1 = ecount << _ECOUNT_LSB | count
        if drawn:
            state = registers.IMP_PMSRNDR_EL1
            registers.IMP_PMSRNDR_EL1 = state & ~_STATE | sampling.draw(state & _STATE)
        return selected

    def choose_access(self, settings: Registers | None = None) -> tuple[int, int]:
        """Choose the sampled access of a selected operation that can access more than one address.

        Call this once for each selected operation, in program order, before `start` or `collide`. Each call draws a
        random number, whether or not the number is used.

        PMSFCR_EL1 and the random number are read from `settings`, or from the current registers if it is None. The
        state that follows that random number is written to the current registers.

        Returns
        -------
        destination : int
            1 if the store is sampled of an operation that loads from one address and stores to another, otherwise 0.
            Always 0 if the configuration has no such operations.
        element : int
            Sampled element of a non-contiguous SVE access, as a fraction of the number of elements in units of 1/256
            (D17.6.6, R_MYPFF). Always 0 without FEAT_SVE and FEAT_SME.

        Raises
        ------
        ValueError
            If the configuration has no operations that access more than one address.
        """
        config = self.config
        if not config.access_bits:
            raise ValueError(f"mops, gcs, sve or sme must be True to choose an access, not False in {config.name}")
        settings = settings or self.registers
        state = settings.IMP_PMSRNDR_EL1 >> _ACCESS_LSB
        self.registers.IMP_PMSRNDR_EL1 = (
            self.registers.IMP_PMSRNDR_EL1 & _STATE | sampling.draw_access(state, config.access_bits) << _ACCESS_LSB
        )
        number = sampling.access_number(state, config.access_bits)
        if not config.two_accesses:
            return 0, number
        return filtering.sampled_access(settings, number & 1), number >> 1

    def collide(self) -> None:
        """Report a sample collision: the selected operation is not sampled, because no slot is free (D17.3.7)."""
        self.buffer.collide()

    def start(self, pe: PEState, settings: Registers | None = None) -> Start:
        """Sample the selected operation: capture the values of `pe` that may be collected.

        PMSCR_EL1 and PMSCR_EL2 are read from `settings`, or from the current registers if it is None.
        """
        config, registers = self.config, settings or self.registers
        return Start(
            el=pe.el,
            ns=pe.ns,
            nse=pe.nse,
            contextidr_el1=pe.contextidr_el1 if control.collect_contextidr_el1(config, registers, pe) else None,
            contextidr_el2=pe.contextidr_el2 if control.collect_contextidr_el2(config, registers, pe) else None,
            timestamp=control.timestamp(config, registers, pe),
            collect_pa=control.collect_physical_address(config, registers, pe),
            collect_nv2_va=control.collect_nv2_va(config, registers, pe),
        )

    def take_branch(
        self, target: Location, *, pe: PEState = _KERNEL, el: int, ns: int, nse: int = 0, aarch32: int = 0
    ) -> None:
        """Retire a taken branch: `target` becomes the previous branch target of the operations that follow it.

        Call this in program order, and for a sampled branch after its `finish`. `el`, `ns`, `nse` and `aarch32`
        describe where the branch was executed. The fields of System registers are those in `pe`.

        If profiling was disabled or prohibited there, the operations that follow have no previous branch target
        (D17.6.3.1).
        """
        profiled = control.branch_profiled(self.config, self.registers, pe, el=el, ns=ns, nse=nse, aarch32=aarch32)
        self.previous_target = target if profiled else None

    def finish(
        self,
        start: Start,
        operation: Operation,
        *,
        total: int,
        issue: int,
        translation: int,
        alternate_issue: int = 0,
    ) -> bytes | None:
        """Finish a sampled operation, and return the record that was written, or None.

        No record is written if a filter rejects it, if profiling was disabled or stopped in the meantime, or in Discard
        mode. `filtering.collect` and `filtering.feed` return the PMU events of the operation.

        Parameters
        ----------
        start : Start
            Values captured by `start`.
        operation : Operation
            Operation as the core reports it.
        total, issue, translation : int
            Latencies in cycles, not saturated.
        alternate_issue : int
            Issue latency in cycles of the alternate clock, not saturated (D17.6.1).
        """
        sample = Sample(
            start=start,
            operation=operation,
            previous_target=self.previous_target,
            total=total,
            issue=issue,
            translation=translation,
            alternate_issue=alternate_issue,
        )
        if not filtering.collect(self.config, self.registers, sample):
            return None
        record = records.encode(self.config, sample)
        return record if self.buffer.write(record) else None
