"""Output of `spurtle profile`."""

from pathlib import Path

from spurtle_sim.records.decode import Record, decode_records

__all__ = ["profile_records"]


def profile_records(output: Path) -> list[Record]:
    """Return the decoded records of a profile, which are in the file `{output}.spe`."""
    return list(decode_records(Path(f"{output}.spe").read_bytes()))
