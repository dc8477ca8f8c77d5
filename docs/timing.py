"""Timing diagrams: `docs/timing/NAME.yaml` is the source in WaveDrom's format, `docs/timing/NAME.svg` the drawing."""

import re
from pathlib import Path

import yaml
from wavedrom.waveform import WaveDrom

__all__ = ["FOLDER", "current", "svg"]

FOLDER = Path(__file__).parent / "timing"


def current() -> dict[Path, str]:
    """Return the drawing of each source, by the path of its file."""
    return {path.with_suffix(".svg"): svg(path.read_text()) for path in sorted(FOLDER.glob("*.yaml"))}


def svg(source: str) -> str:
    """Return the drawing of a timing diagram, on a white background. Raise ValueError if it has no signals."""
    drawing = WaveDrom().render_waveform(0, yaml.safe_load(source))
    if drawing is None:
        raise ValueError("a timing diagram must have the key `signal`")
    drawn = drawing.tostring()
    # WaveDrom defines every brick of every wave. Most are not used.
    used = set(re.findall(r'xlink:href="#([^"]+)"', drawn))
    drawn = re.sub(r'<g id="([^"]+)">(?:<(?:path|rect)[^>]*/>)*</g>', lambda m: m[0] if m[1] in used else "", drawn)
    drawn = re.sub(r'viewBox="([\d.]+),([\d.]+),([\d.]+),([\d.]+)"', r'viewBox="\1 \2 \3 \4"', drawn)
    drawn = drawn.replace("</defs>", '</defs><rect width="100%" height="100%" fill="#fff" />', 1)
    return drawn.replace("><g", ">\n<g") + "\n"
