"""Summary of the named configurations, for `spurtle configs`."""

from collections.abc import Callable

from spurtle.config import CONFIGS, SPUConfig
from spurtle.config.figures import figures

__all__ = ["side_by_side"]

_FEATURES = {
    **{f"FEAT_SPE_{name}": name.lower() for name in ("ERnd", "EFT", "FnE", "FDS", "PBT", "CRR", "FPF")},
    "FEAT_SPE_SME": "spe_sme",
    **{f"FEAT_{name}": name.lower() for name in ("MOPS", "GCS", "NV2", "SVE", "SME", "RME")},
    "FEAT_MTE2": "mte",
}
"""Fields of `SPUConfig` by the names of architectural features."""


def side_by_side() -> list[list[str]]:
    """Return a table with a column for each configuration. The first row and the first column have the titles."""
    rows = [[title, *(str(cell(config)) for config in CONFIGS.values())] for title, cell in _rows().items()]
    return [["", *CONFIGS], *rows]


def _rows() -> dict[str, Callable[[SPUConfig], object]]:
    """Return functions that return the cells of a row, by the title of the row."""

    def area(device: str) -> Callable[[SPUConfig], str]:
        return lambda config: f"{found.lut4:,}" if (found := figures(config.name, device)) else "?"

    def clock(device: str) -> Callable[[SPUConfig], str]:
        def cell(config: SPUConfig) -> str:
            found = figures(config.name, device)
            if found is None:
                return "?"
            return "not placed" if found.fmax_mhz is None else f"{found.fmax_mhz:,.0f}"

        return cell

    def has(feature: str) -> Callable[[SPUConfig], str]:
        return lambda config: "yes" if getattr(config, feature) else "-"

    return {
        "version": lambda config: f"v1p{config.version - 1}",
        **{name: has(feature) for name, feature in _FEATURES.items()},
        "alternate clock": lambda config: config.altclk.name if config.altclk else "-",
        "lanes": lambda config: config.ops_per_cycle,
        "slots": lambda config: config.slots,
        "record, bytes": lambda config: f"{'to ' if config.layout.packed else ''}{config.layout.max_size}",
        "multiples of": lambda config: config.layout.align,
        "events": lambda config: f"{len(config.events)} of {8 * config.events_bytes}",
        "data source, bits": lambda config: 8 * config.data_source_bytes or "-",
        "counters, bits": lambda config: config.counter_bits,
        "bus, bits": lambda config: 8 * config.bus_bytes,
        "ECP5-6, LUT4": area("ecp5"),
        "ECP5-6, MHz": clock("ecp5"),
        "HX8K, LUT4": area("ice40"),
        "HX8K, MHz": clock("ice40"),
    }
