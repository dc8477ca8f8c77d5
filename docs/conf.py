"""Sphinx configuration: the Markdown of this folder as a site in build/docs."""

from spurtle.support.version import __version__

project = "Spurtle"
release = __version__
extensions = ["myst_parser", "sphinxcontrib.wavedrom"]
source_suffix = {".md": "markdown"}
html_theme = "alabaster"
html_theme_options = {"page_width": "1100px", "description": "An Arm Statistical Profiling Unit in Amaranth HDL"}
myst_heading_anchors = 3
nitpicky = True

# Timing diagrams become SVG here, not in the reader's browser.
wavedrom_html_jsinline = False
render_using_wavedrompy = True
