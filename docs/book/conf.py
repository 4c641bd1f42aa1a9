"""How Sphinx makes the book. `make book` copies this file beside the pages that it has prepared."""

import re
from datetime import date

project = "TinyTransformer"
author = "The TinyTransformer authors"
copyright = f"{date.today().year}, {author}"
language = "en"

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.mathjax"]
exclude_patterns = []
myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath", "attrs_inline"]
suppress_warnings = ["myst.header", "mystnb.unknown_mime_type"]

# The notebooks are shown as they were stored, never run; nothing is loaded from outside.
nb_execution_mode = "off"
nb_ipywidgets_js = {}
nb_merge_streams = True
mathjax_path = "mathjax/tex-svg-full.js"
# The menu would load more scripts.
mathjax3_config = {"options": {"enableMenu": False}, "svg": {"fontCache": "global"}}

toc_object_entries = False

html_theme = "sphinx_book_theme"
html_title = "TinyTransformer"
html_static_path = ["static"]
html_css_files = ["book.css"]
html_js_files = ["book.js"]
html_extra_path = ["extra"]
html_copy_source = False
html_domain_indices = False
html_show_sourcelink = False
html_show_sphinx = False
html_last_updated_fmt = None
html_context = {"default_mode": "auto"}  # light or dark as the reader's system says, until a button is pressed
html_theme_options = {
    "home_page_in_toc": True,
    # The search stands in the side bar; a second one above everything is not needed.
    "navbar_center": [],
    "navbar_end": [],
    "navbar_persistent": [],
    "navbar_start": [],
    "navigation_with_keys": True,
    "pygments_dark_style": "a11y-high-contrast-dark",
    "pygments_light_style": "a11y-high-contrast-light",
    "search_bar_text": "Search the book",
    "show_toc_level": 2,
    "use_download_button": False,
    "use_fullscreen_button": False,
    "use_repository_button": False,
}

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_default_options = {"members": True}
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True


def as_plain_text(app, what, name, obj, options, lines):
    """Our docstrings are paragraphs of plain words with code in backticks; what is indented is an example."""
    text = "\n".join(lines).expandtabs()
    lines.clear()
    for paragraph in re.split(r"\n\s*\n", text.strip("\n")):
        rows = paragraph.split("\n")
        if all(row.startswith("   ") for row in rows):
            lines += ["::", "", *rows, ""]
        else:
            lines += [with_code(" ".join(row.strip() for row in rows)), ""]


def with_code(words):
    """One paragraph of reStructuredText: nothing has a meaning but backticks."""
    parts = re.split(r"(``[^`]+``|`[^`]+`)", words)
    plain = [re.sub(r"([*|_\\`])", r"\\\1", part) for part in parts[::2]]
    code = [f"\\ ``{part.strip('`')}``\\ " for part in parts[1::2]]
    # A zero-width start keeps a dash or a number at the beginning from opening a list.
    return "\\ " + "".join(a + b for a, b in zip(plain, [*code, ""], strict=True))


def setup(app):
    app.connect("autodoc-process-docstring", as_plain_text)
