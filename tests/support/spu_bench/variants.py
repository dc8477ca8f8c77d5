"""Configurations of whole SPUs that are tested."""

from dataclasses import replace

from spurtle.arch import PMSVer
from spurtle.config import SPUConfig, UnpredictableFilter
from spurtle.config.record_layouts import ARM_MODEL, MINIMAL, NEOVERSE_N1, V1P4, Packet
from tests.support.gateware import VARIANTS as BLOCK_VARIANTS

__all__ = ["VARIANTS"]

_NO_PREVIOUS = V1P4.without(Packet.PREVIOUS_TARGET, Packet.ALTERNATE_ISSUE)

VARIANTS = {
    **BLOCK_VARIANTS,
    **{
        config.name: config
        for config in (
            # All of filtering where an operation has neither a lane nor a slot of its own.
            SPUConfig(
                name="lanes1_slots1_filters",
                layout=_NO_PREVIOUS,
                version=PMSVer.SPE_V1P4,
                eft=True,
                fpf=True,
                fne=True,
                fds=True,
                mops=True,
                gcs=True,
                crr=True,
                fgt=True,
                fgt2=True,
                el2=True,
                el3=True,
                sel2=True,
                ecv=True,
                unpredictable_filter=UnpredictableFilter.DISCARD,
                counter_bits=16,
                events=frozenset({*range(13), *range(19, 24), *range(48, 64)}),
                events_bytes=8,
                data_source_bytes=1,
                bus_bytes=32,
            ),
            # Lanes, slots and features in combinations that no named configuration has.
            SPUConfig(
                name="lanes2_slots1_ernd",
                layout=MINIMAL,
                version=PMSVer.SPE_V1P3,
                ops_per_cycle=2,
                ernd=True,
                fne=True,
                mops=True,
                bus_bytes=4,
            ),
            # A record is one beat. There is EL2 and nothing else.
            SPUConfig(
                name="lanes5_slots8",
                layout=NEOVERSE_N1,
                version=PMSVer.SPE_V1P4,
                ops_per_cycle=5,
                slots=8,
                eft=True,
                fpf=True,
                fne=True,
                fds=True,
                el2=True,
                fgt=True,
                fgt2=True,
                data_source_bytes=1,
                bus_bytes=64,
            ),
            # A word of memory is longer than many records.
            SPUConfig(
                name="lanes1_slots3_ernd",
                layout=replace(ARM_MODEL.without(Packet.DATA_SOURCE), padding_last=False),
                version=PMSVer.SPE_V1P4,
                slots=3,
                ernd=True,
                fne=True,
                mops=True,
                nv2=True,
                el2=True,
                el3=True,
                pbt=True,
                bus_bytes=64,
            ),
        )
    },
}
"""Configurations that are tested."""
