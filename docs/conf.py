"""Sphinx configuration: the Markdown of this folder as a site in build/docs."""

from importlib.metadata import version as _version

project = "Spurtle"
release = _version("spurtle")
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
html_theme = "alabaster"
html_theme_options = {"page_width": "1100px", "description": "An Arm Statistical Profiling Unit in Amaranth HDL"}
myst_heading_anchors = 3
nitpicky = True

