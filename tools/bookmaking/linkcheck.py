"""What could fail a reader without a network: links and anchors that lead nowhere, and anything from outside.

A link to another site is allowed as a link that one clicks, never as something that a page loads.
"""

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Which attribute makes a browser load something, by tag. A link element loads only with some relations.
LOADED = dict.fromkeys("script img iframe source audio video embed input track".split(), "src")
LOADED |= {"object": "data", "use": "href", "image": "href"}
NOT_LOADED = {"canonical", "next", "prev", "search", "index", "author", "license", "alternate"}
IN_STYLE = re.compile(r"""url\(\s*["']?([^"')]+)|@import\s+["']([^"']+)""")


@dataclass
class Page(HTMLParser):
    """What one page names, links to and loads."""

    ids: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)
    in_style: bool = False

    def __post_init__(self):
        super().__init__()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attributes}
        self.ids.update(given[name] for name in ("id", "name") if given.get(name))
        self.in_style = tag == "style"
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag == "link" and "href" in given and not NOT_LOADED & set(given.get("rel", "").split()):
            self.loads.append(given["href"])
        if LOADED.get(tag) in given:
            self.loads.append(given[LOADED[tag]])
        self.loads += [part.split()[0] for part in given.get("srcset", "").split(",") if part.strip()]
        self.loads += in_style(given.get("style", ""))

    def handle_data(self, text: str) -> None:
        if self.in_style:
            self.loads += in_style(text)

    def handle_endtag(self, tag: str) -> None:
        self.in_style = False


def in_style(text: str) -> list[str]:
    """What a style sheet loads."""
    return [one or other for one, other in IN_STYLE.findall(text)]


def read_page(path: Path) -> Page:
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def is_outside(address: str) -> bool:
    return address.startswith("//") or urlsplit(address).scheme in ("http", "https", "ftp", "ws", "wss")


def problems_of(folder: Path) -> list[str]:
    """Everything wrong with a built site, one line each."""
    pages = {path.resolve(): read_page(path) for path in sorted(folder.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        name = path.relative_to(folder.resolve()).as_posix()
        for address in page.loads:
            if is_outside(address):
                found.append(f"{name}: loads {address} from outside: ship it with the book")
            elif problem := missing(path, address, pages):
                found.append(f"{name}: loads {address}, {problem}")
        for address in page.links:
            if not is_outside(address) and (problem := missing(path, address, pages)):
                found.append(f"{name}: links to {address}, {problem}")
    for path in sorted(folder.rglob("*.css")):
        name = path.relative_to(folder).as_posix()
        outside = filter(is_outside, in_style(path.read_text(encoding="utf-8")))
        found += [f"{name}: loads {address} from outside: ship it with the book" for address in outside]
    return found


def missing(path: Path, address: str, pages: dict[Path, Page]) -> str:
    """Why an address inside the book leads nowhere, or nothing."""
    parts = urlsplit(address)
    if parts.scheme in ("data", "mailto", "javascript", "blob"):
        return ""
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if target.is_dir():
        target = target / "index.html"
    if not target.exists():
        return "which does not exist"
    if parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].ids:
        return "whose anchor does not exist"
    return ""
