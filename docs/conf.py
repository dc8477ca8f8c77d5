"""Sphinx configuration: the Markdown of this folder as a site in build/docs."""

from spurtle.support.version import __version__

project = "Spurtle"
copyright = "The Spurtle authors"
release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
source_suffix = {".md": "markdown"}
nitpicky = True

html_theme = "furo"
html_title = f"Spurtle {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]

myst_heading_anchors = 3

# The API pages. Docstrings are numpydoc; a name in single backticks is code.
default_role = "literal"
autodoc_default_options = {"members": True, "member-order": "bysource", "no-value": True}
autodoc_typehints = "signature"
napoleon_google_docstring = False
napoleon_custom_sections = [("Members", "params_style")]
# Names of other packages, and of what is not public, have no page to link to.
nitpick_ignore_regex = [("py:.*", ".*")]
