"""Owner of the Profiling Buffer, enabling of profiling, and permissions to collect (D17.6.9).

Ref: DDI0487 M.a, D17.6.9, Table D17-3, D17.6.3.1, D17.6.4.2, and its functions ProfilingBufferOwner(),
StatisticalProfilingEnabled(), CollectContextIDR1(), CollectContextIDR2(), CollectPhysicalAddress() and
CollectTimeStamp().
"""

from amaranth import *
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from .. import arch
from ..arch import PCT
from ..config import SPUConfig, check_config
from ..interface.members import when
from ..interface.pe_state import PEStateSignature, el2_enabled, owner_state
from ..interface.register_layout import register_layout
from ..interface.sampling import TakenBranchSignature
from .component import ConfiguredComponent

__all__ = ["BufferOwner", "CollectionPermissions", "PermissionsLayout", "ProfilingControl"]


class CollectionPermissions(data.Struct):
    """Permissions to collect optional information about an operation. LSB first.

    Members
    -------
    context_el1, context_el2 : unsigned(1)
        CONTEXTIDR_EL1; CONTEXTIDR_EL2.
    timestamp : unsigned(1)
    pa : unsigned(1)
        Physical address.
    nv2_va : unsigned(1)
        Virtual address of an MRS or MSR that FEAT_NV2 transforms into a memory access.
    """

    context_el1: 1
    context_el2: 1
    timestamp: 1
    pa: 1
    nv2_va: 1


class BufferOwner(data.Struct):
    """Owner of the Profiling Buffer: its Security state, and EL2 (one) or EL1 (zero)."""

    ns: 1
    nse: 1
    el2: 1


class PermissionsLayout(data.StructLayout):
    """Permissions of the System registers for operations in the Security state that owns the buffer. LSB first.

    Members
    -------
    profiled : unsigned(2), unsigned(3) with EL2
        Profiling is enabled, one bit for each Exception level from EL0.
    context_el1, timestamp, pa : unsigned(1)
        See `CollectionPermissions`. `context_el1` is valid at EL1 and EL0.
    context_el2 : unsigned(1)
        See `CollectionPermissions`. Only with EL2.
    subtract_offset : unsigned(3)
        The offset is subtracted from the system counter, one bit for each Exception level. Only with EL2.
    """

    def __init__(self, config: SPUConfig):
        check_config(config)
        levels = 3 if config.el2 else 2
        names = ["context_el1", "timestamp", "pa", *(["context_el2"] if config.el2 else [])]
        super().__init__(
            {"profiled": levels, **dict.fromkeys(names, 1), **({"subtract_offset": levels} if config.el2 else {})}
        )


class ProfilingControl(ConfiguredComponent):
    """Enable and permissions for the operations of this cycle, by the System registers of the previous cycle.

    The owner, the permissions and the offset are registered, so that only the state of an operation is compared in its
    cycle. The permissions apply to the Security state that owns the buffer, because no other operation is profiled.

    Latency: one cycle from `pmscr`, `pmscr_el2` and the members of `pe` in `PROFILING_CONTROLS`; none from `running`,
    `branch` and the other members of `pe`.

    Without EL3 the only Security state owns the buffer. Reserved values of MDCR_EL3.{NSPBE, NSPB} select Secure state
    as the owner. Reserved values of PCT select virtual time. Reset: nothing is permitted.

    Members
    -------
    pe : In(PEStateSignature)
    pmscr : In(PMSCR_EL1)
    pmscr_el2 : In(PMSCR_EL2)
        Only with EL2.
    running : In(1)
        The Profiling Buffer is enabled and not stopped.
    enabled : Out(1)
        Profiling is enabled for the operations that pass the sampling point in this cycle. Zero if `new_owner` is one.
    collect : Out(CollectionPermissions)
        Valid while `enabled` is one.
    offset : Out(64)
        Offset of the system counter for the timestamp. This and `subtract_offset` only with EL2.
    subtract_offset : Out(1)
        `offset` is subtracted; otherwise the timestamp is the system counter. Valid while `enabled` is one.
    programmable : Out(1)
        Neither a higher Exception level nor another Security state owns the buffer, or the PE is at EL3: PMBIDR_EL1.P
        is zero.
    new_owner : Out(1)
        The owner of the buffer changed in the previous cycle. This and `programmable` only with EL2 or EL3.
    branch : In(TakenBranchSignature)
    branch_enabled : Out(1)
        Profiling is enabled in the state in which the branch was executed. This and `branch` only with FEAT_SPE_PBT.
    """

    proof_signals = ("previous_owner", "permissions")

    def __init__(self, config: SPUConfig):
        check_config(config)
        super().__init__(
            config,
            {
                "pe": In(PEStateSignature(config)),
                "pmscr": In(register_layout(arch.PMSCR_EL1)),
                **when(config.el2, pmscr_el2=In(register_layout(arch.PMSCR_EL2))),
                "running": In(1),
                "enabled": Out(1),
                "collect": Out(CollectionPermissions),
                **when(config.el2, offset=Out(arch.COUNT_BITS), subtract_offset=Out(1)),
                **when(config.several_owners, programmable=Out(1), new_owner=Out(1)),
                **when(config.pbt, branch=In(TakenBranchSignature(config)), branch_enabled=Out(1)),
            },
        )

    def elaborate(self, platform):
        m = Module()

        owner = Signal(BufferOwner)
        previous_owner = Signal(BufferOwner)
        changed = Signal()
        permissions = Signal(PermissionsLayout(self._config))
        self._derive_owner(m, owner)
        self._permit(m, permissions, owner, changed)
        self._collect(m, permissions)
        m.d.comb += self.enabled.eq(self._profiled(self.pe, previous_owner, permissions) & ~self.pe.debug)
        if self._config.pbt:
            m.d.comb += self.branch_enabled.eq(self._profiled(self.branch, previous_owner, permissions))
        if self._config.el2:
            self._choose_offset(m, permissions, owner)
            m.d.comb += self.subtract_offset.eq(permissions.subtract_offset.bit_select(self.pe.el, 1))
        if self._config.several_owners:
            is_owner = self._same_state(self.pe, previous_owner) & ((self.pe.el == 2) | ~previous_owner.el2)
            m.d.comb += self.programmable.eq((self.pe.el == 3) | is_owner)
            # An operation in the cycle of the change still has the permissions of the previous owner. `running` of the
            # buffer, which depends on `new_owner`, drops it one cycle later. In that cycle no operation is profiled.
            m.d.comb += changed.eq(owner.as_value() != previous_owner.as_value())
            m.d.sync += [previous_owner.eq(owner), self.new_owner.eq(changed)]

        return m

    def _derive_owner(self, m, owner):
        """Set `owner`, as ProfilingBufferOwner() returns it."""
        m.d.comb += [owner[name].eq(bit) for name, bit in owner_state(self._config, self.pe).items()]
        if self._config.el2:
            m.d.comb += owner.el2.eq(self._el2_enabled(owner) & (self.pe.mdcr_el2_e2pb == 0))

    def _el2_enabled(self, owner):
        """Return whether EL2 is enabled in the Security state that owns the buffer."""
        return el2_enabled(self._config, self.pe, owner.ns)

    def _tge(self, owner):
        """Return the Effective value of HCR_EL2.TGE in the Security state that owns the buffer."""
        return self._el2_enabled(owner) & self.pe.hcr_el2_tge if self._config.el2 else C(0)

    def _same_state(self, state, owner):
        """Return whether `state` is in the Security state that owns the buffer."""
        if not self._config.el3:
            return C(1)
        same = state.ns == owner.ns
        return same & (state.nse == owner.nse) if self._config.rme else same

    def _profiled(self, state, owner, permissions):
        """Return whether profiling is enabled in `state`, except in Debug state. It is never enabled at EL3."""
        # An AND-OR has fewer levels than a multiplexer, and is zero at EL3.
        enabled = Cat(bit & (state.el == level) for level, bit in enumerate(permissions.profiled)).any()
        return self.running & self._same_state(state, owner) & ~state.aarch32 & enabled

    def _permit(self, m, permissions, owner, changed):
        """Register the permissions, except for the offset."""
        tge = self._tge(owner)
        el0, profiled = self.pmscr.E0SPE, []
        permit = {"context_el1": self.pmscr.CX & ~tge, "timestamp": self.pmscr.TS, "pa": self.pmscr.PA}
        if self._config.el2:
            el2 = self._el2_enabled(owner)
            el0, profiled = Mux(tge, self.pmscr_el2.E0HSPE, el0), [self._el2_profiled(owner)]
            # If EL2 is enabled in the Security state of the owner, physical addresses need its permission as well.
            permit |= {
                "context_el2": self.pmscr_el2.CX & el2,
                "timestamp": Mux(owner.el2, self.pmscr_el2.TS, self.pmscr.TS),
                "pa": (self.pmscr_el2.PA | ~el2) & (owner.el2 | self.pmscr.PA),
            }
        # Profiling is not enabled for an owner at EL1 while HCR_EL2.TGE is one.
        permitted = owner.el2 | ~tge
        permit["profiled"] = Mux(changed, 0, Cat(el0 & permitted, self.pmscr.E1SPE & permitted, *profiled))
        m.d.sync += [permissions[name].eq(permission) for name, permission in permit.items()]

    def _el2_profiled(self, owner):
        """Return whether profiling is enabled at EL2."""
        return owner.el2 & self.pmscr_el2.E2SPE

    def _collect(self, m, permissions):
        """Set the permissions to collect. Bits that are not assigned are zero."""
        collect = {
            "context_el1": permissions.context_el1 & (self.pe.el < 2),
            "timestamp": permissions.timestamp & self.pe.count_enabled,
            "pa": permissions.pa,
        }
        if self._config.el2:
            collect["context_el2"] = permissions.context_el2
        if self._config.nv2:
            # The address is recorded only if profiling is enabled at EL2 (D17.6.4.2).
            collect["nv2_va"] = permissions.profiled[2]
        m.d.comb += [self.collect[name].eq(permission) for name, permission in collect.items()]

    def _choose_offset(self, m, permissions, owner):
        """Register the offset of the system counter, and the Exception levels at which it applies (Table D17-3).

        Where EL2 is enabled, PMSCR_EL1.PCT is used only as far as PMSCR_EL2.PCT permits.
        """
        el1 = self._effective_pct(m, "el1", self.pmscr)
        el2 = self._effective_pct(m, "el2", self.pmscr_el2)
        time = Signal(PCT)
        with m.If(~self._el2_enabled(owner)):
            m.d.comb += time.eq(el1)
        with m.Elif(owner.el2 | (el2 == PCT.VIRTUAL)):
            m.d.comb += time.eq(el2)
        with m.Elif((el2 == PCT.OFFSET_PHYSICAL) & (el1 != PCT.VIRTUAL)):
            m.d.comb += time.eq(PCT.OFFSET_PHYSICAL)
        with m.Else():
            m.d.comb += time.eq(el1)

        # The virtual offset does not apply to a host (FEAT_VHE): it is zero.
        virtual = time == PCT.VIRTUAL
        host = self._el2_enabled(owner) & self.pe.hcr_el2_e2h
        subtract = Cat(virtual & ~(host & self.pe.hcr_el2_tge), virtual, virtual & ~host)
        m.d.sync += [permissions.subtract_offset.eq(subtract), self.offset.eq(self.pe.cntvoff_el2)]
        if self._config.ecv_poff:
            offset = self.pe.cnthctl_el2_ecv & (self.pe.scr_el3_ecven if self._config.el3 else 1)
            with m.If(time == PCT.OFFSET_PHYSICAL):
                m.d.sync += [permissions.subtract_offset.eq(offset.replicate(3)), self.offset.eq(self.pe.cntpoff_el2)]

    def _effective_pct(self, m, name, pmscr):
        """Return PCT of a register, with the reserved value as virtual time."""
        # A signal with both bits would look like a combinational loop to Verilator, because Yosys can merge its first
        # bit with a bit of the register.
        offset_physical = Signal(name=f"offset_physical_{name}")
        m.d.comb += offset_physical.eq(pmscr.PCT.all())
        return Cat(pmscr.PCT[0], offset_physical)
