"""Sphinx configuration: the Markdown of this folder as a site in build/docs."""

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

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
autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_typehints = "signature"
napoleon_google_docstring = False
napoleon_custom_sections = [("Members", "params_style")]
# Names of other packages, and of what is not public, have no page to link to.
nitpick_ignore_regex = [("py:.*", ".*")]

LONGEST_VALUE = 40
"""Characters of the longest value of a constant that is shown: numbers and strings, but not mappings and layouts."""


def hide_long_values(app: Sphinx, domain: str, objtype: str, content: nodes.Element) -> None:
    """Remove the value of a constant from its signature if it is long.

    autodoc ignores its option `no-value` for the members of a module.
    """
    for signature in content.parent.children:
        if isinstance(signature, addnodes.desc_signature):
            for part in list(signature.findall(addnodes.desc_annotation)):
                text = part.astext().lstrip()
                if text.startswith("=") and len(text) > LONGEST_VALUE:
                    part.parent.remove(part)


def setup(app: Sphinx) -> None:
    """Register the hook. Sphinx calls this function."""
    app.connect("object-description-transform", hide_long_values)
