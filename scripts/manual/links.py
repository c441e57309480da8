"""Follows every link of the built manual: python links.py SITE. Prints what leads nowhere, and ends with 1 for it.

A page fetches nothing from elsewhere: scripts, styles, fonts and images are the site's own. Links that people
follow may lead out; those are not followed: a build says the same without a network.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

FETCHED = {("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("link", "href")}
# <link> of these kinds is not fetched: it says where the page stands.
SAID_ONLY = {"canonical", "next", "prev", "alternate"}


@dataclass
class Links(HTMLParser):
    """What one page names: its own anchors, where it leads, what a browser fetches for it."""

    anchors: set[str] = field(default_factory=set)
    leads: list[str] = field(default_factory=list)
    fetches: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.leads.append(given["href"])
        for name in ("src", "href"):
            if (tag, name) in FETCHED and name in given and given.get("rel") not in SAID_ONLY:
                self.fetches.append(given[name])


def read(page: Path) -> Links:
    links = Links()
    links.feed(page.read_text(encoding="utf-8"))
    return links


def faults(site: Path) -> Iterator[str]:
    """A line for each link that leads nowhere, and for each thing that a page would fetch from elsewhere."""
    pages = {path.resolve(): read(path) for path in sorted(site.resolve().rglob("*.html"))}
    for page, links in pages.items():
        name = page.relative_to(site.resolve())
        for target in links.fetches:
            if urlsplit(target).scheme or target.startswith("//"):
                yield f"{name}: fetches {target} from elsewhere"
            elif not _file(page, target).is_file():
                yield f"{name}: fetches {target}, which is not there"
        for target in links.leads:
            if not urlsplit(target).scheme and (why := _wrong(page, target, pages)):
                yield f"{name}: {target}: {why}"


def _file(page: Path, target: str) -> Path:
    path = unquote(urlsplit(target).path)
    return (page.parent / path).resolve() if path else page


def _wrong(page: Path, target: str, pages: dict[Path, Links]) -> str | None:
    path, anchor = _file(page, target), unquote(urlsplit(target).fragment)
    if path.is_dir():
        path = path / "index.html"
    if not path.is_file():
        return "no such page"
    if anchor and path in pages and anchor not in pages[path].anchors:
        return "no such place on that page"
    return None


def main(site: Path) -> int:
    wrong = list(faults(site))
    count = len(list(site.rglob("*.html")))
    print("\n".join(wrong) if wrong else f"{site}: {count} pages, no dead link, nothing from elsewhere")
    return 1 if wrong or not count else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
