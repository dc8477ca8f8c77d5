"""Frame of the generated figures: an SVG with a title of one or more lines and the styles that all figures share."""

from collections.abc import Iterable, Sequence

__all__ = ["figure"]

_STYLES = (
    "text { font: 13px Helvetica, Arial, sans-serif; fill: #444 }",
    ".axis { stroke: #444; stroke-width: 1; fill: none }",
    ".name { font-weight: bold; fill: #16344f }",
    ".on { font-size: 11.5px }",
    ".middle { text-anchor: middle }",
    ".end { text-anchor: end }",
)


def figure(
    size: tuple[float, float], *, left: int, title: Sequence[str], styles: Iterable[str], panels: Iterable[str]
) -> str:
    """Return an SVG figure.

    Parameters
    ----------
    size : tuple of float
        Width and height in pixels.
    left : int
        Position of the title.
    title : sequence of str
        Lines of text.
    styles : iterable of str
        CSS rules in addition to those of text, axes and labels.
    panels : iterable of str
        Elements below the title.
    """
    width, height = size
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}">',
            "  <style>",
            *(f"    {rule}" for rule in (*_STYLES, *styles)),
            "  </style>",
            f'  <rect width="{width:g}" height="{height:g}" fill="#fff"/>',
            *(
                f'  <text x="{left}" y="{20 + 17 * number}">\n    {line}\n  </text>'
                for number, line in enumerate(title)
            ),
            *panels,
            "</svg>\n",
        )
    )
