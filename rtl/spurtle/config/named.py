"""Named configurations."""

from collections.abc import Mapping
from types import MappingProxyType

from ..arch import AltClk, PMSVer
from .record_layouts import ARM_MODEL, HISILICON_MOBILE, KUNPENG_920, MINIMAL, NEOVERSE_N1, V1P4
from .spu import SPUConfig

__all__ = ["CONFIGS"]

CONFIGS: Mapping[str, SPUConfig] = MappingProxyType(
    {
        config.name: config
        for config in (
            SPUConfig(name="minimal", layout=MINIMAL),
            SPUConfig(
                name="neoverse_n1",
                layout=NEOVERSE_N1,
                el2=True,
                el3=True,
                arch_inst=False,
                # Event 12 is IMPLEMENTATION DEFINED: a late prefetch on Neoverse N1.
                events=frozenset(range(11)) | {12},
                events_bytes=2,
                data_source_bytes=1,
            ),
            SPUConfig(
                name="kunpeng_920",
                layout=KUNPENG_920,
                el2=True,
                el3=True,
                arch_inst=False,
                events=frozenset(range(11)),
                events_bytes=2,
            ),
            SPUConfig(
                name="hisilicon_mobile",
                layout=HISILICON_MOBILE,
                el2=True,
                el3=True,
                arch_inst=False,
                events=frozenset(range(11)),
                events_bytes=4,
            ),
            SPUConfig(
                name="arm_model",
                layout=ARM_MODEL,
                version=PMSVer.SPE_V1P2,
                ops_per_cycle=2,
                slots=2,
                fne=True,
                sve=True,
                el2=True,
                el3=True,
                sel2=True,
                ecv=True,
                ecv_poff=True,
                fgt=True,
                pbt=True,
                crr=True,
                counter_bits=16,
                events=frozenset({*range(12), 17, 18}),
                events_bytes=4,
                data_source_bytes=1,
            ),
            SPUConfig(
                name="v1p4",
                layout=V1P4,
                version=PMSVer.SPE_V1P4,
                ops_per_cycle=8,
                slots=4,
                ernd=True,
                eft=True,
                fne=True,
                fds=True,
                mops=True,
                gcs=True,
                mte=True,
                nv2=True,
                sve=True,
                sme=True,
                el2=True,
                el3=True,
                sel2=True,
                ecv=True,
                ecv_poff=True,
                fgt=True,
                fgt2=True,
                the=True,
                poe=True,
                pie=True,
                rme=True,
                spe_sme=True,
                pbt=True,
                crr=True,
                fpf=True,
                altclk=AltClk.SMCU,
                arch_inst=False,
                counter_bits=16,
                events=frozenset({*range(13), *range(17, 26)}),
                events_bytes=4,
                data_source_bytes=2,
                bus_bytes=16,
                outstanding=4,
            ),
        )
    }
)
"""Named configurations, which are supported and tested end to end. Others are built at the risk of the user."""
