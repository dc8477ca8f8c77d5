"""The whole SPU, step by step and without timing: who drives it says what passes, what collides, what finishes."""

# Ref: DDI0487 M.a, D17.

from spurtle.arch import IMP_PMSRNDR_EL1, PMSICR_EL1, PMSIRR_EL1, Register
from spurtle.config import SPUConfig

from . import control, filtering, records, sampling
from .buffer import Buffer
from .control import PEState
from .operation import Location, Operation, Sample, Start
from .registers import Registers, find_register

__all__ = ["ReferenceSPU"]

# Plain numbers, because a program asks once for each of its operations.
_INTERVAL_LSB = PMSIRR_EL1.fields["INTERVAL"].lsb
_RND = PMSIRR_EL1.fields["RND"].mask
_COUNT = PMSICR_EL1.fields["COUNT"].mask
_ECOUNT_LSB = PMSICR_EL1.fields["ECOUNT"].lsb
_STATE = IMP_PMSRNDR_EL1.fields["STATE"].mask
_ACCESS_LSB = IMP_PMSRNDR_EL1.fields["ACCESS"].lsb

_KERNEL = PEState(el=1)


class ReferenceSPU:
    """A Statistical Profiling Unit.

    Parameters
    ----------
    config : SPUConfig

    Attributes
    ----------
    registers : Registers
        The System registers, as the architecture names them.
    buffer : Buffer
        The Profiling Buffer and what was written to it.
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
        """MSR. Raises ValueError if the SPU has no register of that name."""
        self.registers.write(self.config, find_register(self.config, register), value)
        self.buffer.stop_if_full()

    def read(self, register: str | Register, pe: PEState = _KERNEL) -> int:
        """MRS, by EL1 that owns the Profiling Buffer unless `pe` says otherwise. Raises ValueError if the SPU has no
        register of that name.
        """
        return self.registers.read(self.config, find_register(self.config, register), pe)

    def update_owner(self, pe: PEState) -> bool:
        """The state of the PE is this one now: to be told whenever it changes. Before, Non-secure EL1 owns the buffer.

        True if the Profiling Buffer has another owner than before. Then there is no previous branch target, and what is
        in flight or not written yet is to be dropped by who drives this.
        """
        owner = control.owner(self.config, pe)
        if owner == self._owner:
            return False
        self._owner = owner
        self.previous_target = None
        return True

    def pass_operation(self, pe: PEState) -> bool:
        """One operation passes the sampling point; True if it is selected. Then call either `start` or `collide`."""
        return control.profiling_enabled(self.config, self.registers, pe) and self.count_operation()

    def count_operation(self, settings: Registers | None = None) -> bool:
        """The sample interval counters take one member of the sample population; True if it is selected.

        PMSIRR_EL1 and the random number are those in `settings`, if they are not the present ones.
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
        """What is sampled of a selected operation that accesses more than one place. To be called once for each
        selected operation, in program order, before `start` or `collide`: a random number is drawn each time, whether
        or not it decides.

        PMSFCR_EL1 and the random number are those in `settings`, if they are not the present ones; the generator's new
        state, that number on from there, is in the present registers.

        Returns
        -------
        destination : int
            1 for the store, if it turns out to load from one address and store to another. Zero where none does.
        element : int
            Which element, in 256ths of their number, if it turns out to be a non-contiguous SVE access (D17.6.6,
            R_MYPFF). Zero without FEAT_SVE and FEAT_SME.

        Raises
        ------
        ValueError
            If the configuration has no such operations.
        """
        config = self.config
        if not config.access_bits:
            raise ValueError(
                f"mops, gcs, sve or sme must be True where an access is chosen, not False in {config.name}"
            )
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
        """The selected operation is not sampled: another is in flight."""
        self.buffer.collide()

    def start(self, pe: PEState) -> Start:
        """The selected operation is sampled: capture what may be collected of the state that it passed in."""
        config, registers = self.config, self.registers
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
        """A taken branch that was executed at this Exception level, in this state, has retired: `target` is the
        previous branch target of what follows in program order. To be called in program order, and of a sampled branch
        after its `finish`. The fields of System registers are those in `pe`.

        If profiling was disabled or prohibited there, what follows has none (D17.6.3.1).
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
        """The sampled operation has finished, after so many cycles: the record that was written, None if it was not.

        A record is not written if a filter rejects it, if profiling was disabled or stopped in the meantime, or in
        Discard mode. What is counted of the operation `filtering.collect` and `filtering.feed` tell.
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
