"""State of the PE: Exception level, Security state, and the System registers that control profiling."""

from typing import Any

from amaranth.hdl import Const, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import Out

from ..arch import CONTEXT_BITS, COUNT_BITS, FineGrainedTrap
from ..config import SPUConfig, check_config
from ..support.arguments import check_type
from .members import when
from .signature import StructuralSignature

__all__ = ["PROFILING_CONTROLS", "FineGrainedTrapsLayout", "PEStateSignature", "el2_enabled", "owner_state"]

PROFILING_CONTROLS = (
    *("mdcr_el2_e2pb", "hcr_el2_e2h", "hcr_el2_tge", "cntvoff_el2", "cnthctl_el2_ecv", "cntpoff_el2"),
    *("mdcr_el3_nspb", "mdcr_el3_nspbe", "scr_el3_eel2", "scr_el3_ecven"),
)
"""Members of `PEStateSignature` that take effect one cycle later for operations, branches and PMBIDR_EL1.P."""


class FineGrainedTrapsLayout(data.StructLayout):
    """Fields of HDFGRTR_EL2 or HDFGWTR_EL2 that trap accesses to registers of this SPU. LSB first.

    Each field is one bit with its architectural name. The fields are in the order of the register's bits. HDFGRTR_EL2
    traps reads, HDFGWTR_EL2 (`write`) traps writes. With `second` the fields are those of HDFGRTR2_EL2 or HDFGWTR2_EL2.
    """

    def __init__(self, config: SPUConfig, *, write: bool, second: bool = False):
        check_config(config)
        check_type("write", write, bool)
        check_type("second", second, bool)
        super().__init__({trap.name: 1 for trap in _fine_grained_traps(config, write=write, second=second)})


def _fine_grained_traps(config: SPUConfig, *, write: bool, second: bool) -> list[FineGrainedTrap]:
    traps = [
        register.fine_grained
        for register in config.registers
        if register.fine_grained and not (write and register.read_only)
    ]
    return sorted((trap for trap in traps if trap.second == second), key=lambda trap: trap.bit)


class PEStateSignature(StructuralSignature):
    """State of the PE for the operations at the sampling point in this cycle, seen from the core.

    Fields of System registers carry the values that software wrote. The SPU computes their Effective values. A port is
    named after its register and field. A value changes when the context is synchronized, not when MSR executes.

    The System registers that control profiling take effect one cycle later for the operations at the sampling point:
    the members in `PROFILING_CONTROLS`, PMSCR_EL1 and PMSCR_EL2. The core presents a new value at least one cycle
    before the first operation that follows the context synchronization event passes the sampling point. All other
    members have no latency. An access to a System register uses the values of its cycle, except for PMBIDR_EL1.P.

    Members
    -------
    el : Out(2)
        Exception level.
    ns : Out(1)
        Non-secure state; Realm state if `nse` is also one. At EL3: SCR_EL3.NS, for the Exception levels below. Constant
        without EL3.
    nse : Out(1)
        Realm state if `ns` is also one. At EL3: SCR_EL3.NSE. Only with FEAT_RME.
    debug : Out(1)
        Debug state.
    aarch32 : Out(1)
        Executing in AArch32 state.
    contextidr_el1 : Out(32)
    contextidr_el2 : Out(32)
        This and the next five only with EL2.
    mdcr_el2_e2pb : Out(2)
        EL2 owns the Profiling Buffer if this is zero.
    mdcr_el2_tpms : Out(1)
        Accesses from EL1 to the registers that control sampling trap to EL2.
    hcr_el2_e2h, hcr_el2_tge : Out(1)
    cntvoff_el2 : Out(64)
        Virtual offset of the system counter.
    cnthctl_el2_ecv, cntpoff_el2 : Out(1), Out(64)
        Enable of the physical offset of the system counter; the offset. Only with FEAT_ECV_POFF.
    mdcr_el3_nspb, mdcr_el3_nspbe : Out(2), Out(1)
        Security state that owns the Profiling Buffer. Only with EL3, `mdcr_el3_nspbe` only with FEAT_RME.
    scr_el3_eel2 : Out(1)
        EL2 is enabled in Secure state. Only with FEAT_SEL2.
    scr_el3_ecven : Out(1)
        The physical offset of the system counter is not used if this is zero. Only with EL3 and FEAT_ECV_POFF.
    mdcr_el3_enpmsn, mdcr_el3_enpms3 : Out(1)
        If zero, accesses to PMSNEVFR_EL1 trap to EL3; if zero, accesses to PMSDSFR_EL1 do. Only with EL3 and those
        registers.
    hdfgrtr_el2, hdfgwtr_el2 : Out(FineGrainedTrapsLayout)
        Only with FEAT_FGT.
    hdfgrtr2_el2, hdfgwtr2_el2 : Out(FineGrainedTrapsLayout)
        Only with FEAT_FGT2 and PMSDSFR_EL1.
    scr_el3_fgten, scr_el3_fgten2 : Out(1)
        EL3 enables the fields of `hdfgrtr_el2` and `hdfgwtr_el2`; those of `hdfgrtr2_el2` and `hdfgwtr2_el2`. Only with
        EL3 and these ports.
    physical_count : Out(64)
        PhysicalCountInt(): the system counter.
    count_enabled : Out(1)
        The system counter counts (CNTCR.EN).
    """

    def __init__(self, config: SPUConfig):
        check_config(config)
        super().__init__(
            {
                "el": Out(2),
                "ns": Out(1),
                **when(config.rme, nse=Out(1)),
                "debug": Out(1),
                "aarch32": Out(1),
                "contextidr_el1": Out(CONTEXT_BITS),
                **when(
                    config.el2,
                    contextidr_el2=Out(CONTEXT_BITS),
                    mdcr_el2_e2pb=Out(2),
                    mdcr_el2_tpms=Out(1),
                    hcr_el2_e2h=Out(1),
                    hcr_el2_tge=Out(1),
                    cntvoff_el2=Out(COUNT_BITS),
                ),
                **when(config.ecv_poff, cnthctl_el2_ecv=Out(1), cntpoff_el2=Out(COUNT_BITS)),
                **when(config.el3, mdcr_el3_nspb=Out(2)),
                **when(config.rme, mdcr_el3_nspbe=Out(1)),
                **when(config.sel2, scr_el3_eel2=Out(1)),
                **when(config.el3 and config.ecv_poff, scr_el3_ecven=Out(1)),
                **when(config.el3 and config.fne, mdcr_el3_enpmsn=Out(1)),
                **when(config.el3 and config.fds, mdcr_el3_enpms3=Out(1)),
                **when(config.fgt, **_trapping(config, "", "scr_el3_fgten")),
                **when(config.fgt2 and config.fds, **_trapping(config, "2", "scr_el3_fgten2")),
                "physical_count": Out(COUNT_BITS),
                "count_enabled": Out(1),
            }
        )


def _trapping(config: SPUConfig, suffix: str, enable: str) -> dict[str, wiring.Member]:
    second = suffix == "2"
    return {
        f"hdfgrtr{suffix}_el2": Out(FineGrainedTrapsLayout(config, write=False, second=second)),
        f"hdfgwtr{suffix}_el2": Out(FineGrainedTrapsLayout(config, write=True, second=second)),
        **when(config.el3, **{enable: Out(1)}),
    }


def el2_enabled(config: SPUConfig, pe: Any, ns: Value) -> Value:
    """Return whether EL2 is enabled in the Security state of `ns`.

    In Non-secure and Realm state it is enabled if it is implemented; in Secure state only if FEAT_SEL2 is implemented
    and SCR_EL3.EEL2 is one. Without EL3 it is enabled if it is implemented.
    """
    if not (config.el2 and config.el3):
        return Const(config.el2, 1)
    return ns | pe.scr_el3_eel2 if config.sel2 else ns


def owner_state(config: SPUConfig, pe: Any) -> dict[str, Value]:
    """Return the Security state that owns the Profiling Buffer, as bits by name: `ns`, and `nse` with FEAT_RME.

    The reserved values of MDCR_EL3.{NSPBE, NSPB} select Secure state.
    """
    ns = pe.mdcr_el3_nspb[1] if config.el3 else pe.ns
    if not config.rme:
        return {"ns": ns}
    return {"ns": ns, "nse": pe.mdcr_el3_nspbe & ns}
