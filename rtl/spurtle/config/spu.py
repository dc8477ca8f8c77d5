"""Configuration of an SPU: checked choices, and the identification and registers that software discovers.

Ref: DDI0487 M.a, D24.7 (PMSIDR_EL1, PMBIDR_EL1).
"""

from dataclasses import dataclass

from .. import arch
from ..arch import Event, Register
from ..support.arguments import check_type
from .checks import check
from .choices import Choices

__all__ = ["SPUConfig", "check_config"]


@dataclass(frozen=True, kw_only=True)
class SPUConfig(Choices):
    """Configuration of an SPU.

    PMSIDR_EL1, PMBIDR_EL1 and PMSVer are derived from the choices, so that software discovers what is implemented.

    Raises
    ------
    TypeError
        If a choice is of another type.
    ValueError
        If a choice is out of range, or two exclude each other; the message names both.
    """

    def __post_init__(self) -> None:
        check(self)

    @property
    def registers(self) -> tuple[Register, ...]:
        """System registers of this configuration. Accesses to others are UNDEFINED."""
        absent = {
            arch.PMSNEVFR_EL1.name: not self.fne,
            arch.PMSDSFR_EL1.name: not self.fds,
            arch.PMSCR_EL2.name: not self.several_owners,
        }
        return tuple(register for register in arch.REGISTERS if not absent.get(register.name))

    @property
    def accessors(self) -> tuple[Register, ...]:
        """System registers and, with EL2, PMSCR_EL12, which FEAT_VHE adds as another name of PMSCR_EL1."""
        return (*self.registers, *([arch.PMSCR_EL12] if self.el2 else []))

    @property
    def filter_events(self) -> int:
        """Mask of the events that PMSEVFR_EL1 and PMSNEVFR_EL1 can select.

        E[0] is never among them, E[6] only with FEAT_SPE_FnE (D17.5.2).
        """
        never = {Event.GENERATED_EXCEPTION} if self.fne else {Event.GENERATED_EXCEPTION, Event.NOT_TAKEN}
        return sum(1 << event for event in self.events - never)

    @property
    def pmsidr(self) -> int:
        """Value of PMSIDR_EL1."""
        return arch.PMSIDR_EL1.pack(
            FE=1,
            FT=1,
            FL=1,
            ArchInst=self.arch_inst,
            LDS=self.data_source_bytes != 0,
            ERnd=self.ernd,
            FnE=self.fne,
            FDS=self.fds,
            PBT=self.pbt,
            CRR=self.crr,
            EFT=self.eft,
            FPF=self.fpf,
            ALTCLK=self.altclk,
            SME=self.spe_sme,
            MaxSize=self.layout.max_size.bit_length() - 1,
            CountSize={12: 0b0010, 16: 0b0011}[self.counter_bits],
        )

    @property
    def pmbidr(self) -> int:
        """Value of PMBIDR_EL1 with P = 0. P depends on the state of the PE that reads it.

        From FEAT_SPEv1p3 on, which requires Armv8.8, F must be one and EA must describe External aborts: they are
        ignored.
        """
        described = not self.external_aborts
        return arch.PMBIDR_EL1.pack(Align=self.layout.align.bit_length() - 1, F=described, EA=described)

    def writable(self, register: Register) -> int:
        """Return the mask of the bits of `register` that hold the value that software writes.

        Other bits are RES0 or read-only. The mask of a register that this configuration does not have is zero.
        """
        if register.read_only or register not in self.registers:
            return 0
        types = [*self.filter_types, *([f"{name}m" for name in self.filter_types] if self.eft else [])]
        pct = arch.PMSCR_EL1.fields["PCT"].mask
        if self.el2:
            pct = 0 if self.ecv else arch.PMSCR_EL1.pack(PCT=0b10)
        masks = {
            # FEAT_ECV adds PCT[1]. Without EL2, PMSCR_EL1.PCT is `fixed`, and PMSCR_EL2 is RES0 at EL3.
            arch.PMSCR_EL1.name: self._mask(arch.PMSCR_EL1, *arch.PMSCR_EL1.fields) & ~pct,
            arch.PMSCR_EL2.name: self._mask(arch.PMSCR_EL2, *arch.PMSCR_EL2.fields) & ~pct if self.el2 else 0,
            arch.PMSICR_EL1.name: self._mask(arch.PMSICR_EL1, "COUNT", *(["ECOUNT"] if self.ernd else [])),
            arch.PMSFCR_EL1.name: self._mask(arch.PMSFCR_EL1, *self.filters, *types),
            arch.PMSEVFR_EL1.name: self.filter_events,
            arch.PMSNEVFR_EL1.name: self.filter_events,
            arch.PMSLATFR_EL1.name: (1 << self.counter_bits) - 1,
            # nVM belongs to a feature that no configuration has.
            arch.PMBLIMITR_EL1.name: self._mask(
                arch.PMBLIMITR_EL1, "E", "LIMIT", *(["FM", "PMFZ"] if self.discard_mode else [])
            ),
            arch.PMBSR_EL1.name: self._mask(arch.PMBSR_EL1, "MSS", "COLL", "S", "EA", "DL", "EC", *self.fault_flags),
            arch.IMP_PMSRNDR_EL1.name: self._mask(
                arch.IMP_PMSRNDR_EL1, "STATE", *(["ACCESS"] if self.access_bits else [])
            ),
        }
        return masks.get(register.name, self._mask(register, *register.fields))

    def fixed(self, register: Register) -> int:
        """Return the mask of the bits of a writable `register` that always read as one."""
        if register is arch.PMSCR_EL1 and not self.el2:
            return arch.PMSCR_EL1.pack(PCT=arch.PCT.PHYSICAL)
        return 0

    @staticmethod
    def _mask(register: Register, *fields: str) -> int:
        return sum(register.fields[field].mask for field in fields)


def check_config(config: object) -> None:
    """Check that a component is built from a configuration.

    Raises
    ------
    TypeError
        If `config` is something else, such as the name of a configuration.
    """
    check_type("config", config, SPUConfig)
