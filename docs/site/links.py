"""Links: from files of the repository to pages, and whether each leads somewhere."""

import os
import posixpath
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pages

FETCHED = {"src", "srcset", "data", "poster"}  # and href, where the tag is link


def repointed(markdown: str, file: Path) -> str:
    """The text of a page with its links to folders, notebooks and code led to their pages.

    Args:
        markdown: what the page says.
        file: where its file stands in the repository.
    """

    def place(match: re.Match[str]) -> str:
        there = (file.parent / match[1]).resolve()
        if not (there.exists() and there.is_relative_to(pages.ROOT)):
            return match[1]
        start = file.relative_to(pages.ROOT).parent.as_posix()
        return posixpath.relpath(pages.place_of(there), start)

    parts = pages.CODE.split(markdown)
    parts[::2] = [pages.LINK.sub(place, part) for part in parts[::2]]
    return "".join(parts)


class _Page(HTMLParser):
    """The ids of a page, its headings, where it leads, and what a browser fetches to show it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.headings: list[int] = []
        self.leads: list[str] = []
        self.fetched: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what one tag says."""
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))
        for name, value in attrs:
            if name in ("id", "name"):
                self.ids.add(value or "")
            elif name == "href" and tag == "a":
                self.leads.append(value or "")
            elif name in FETCHED or (name == "href" and tag == "link"):
                self.fetched.append(value or "")


def faults(site: Path) -> list[str]:
    """Links that lead nowhere, what is fetched from elsewhere, and headings that skip a level."""
    read = {path: _Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    found = []
    for path, page in read.items():
        where = path.relative_to(site).as_posix()
        found += [f"{where}: fetches {one}" for one in page.fetched if urlsplit(one).netloc]
        both = zip(page.headings, page.headings[1:], strict=False)
        found += [f"{where}: h{two} follows h{one}" for one, two in both if two > one + 1]
        for one in dict.fromkeys(page.leads + page.fetched):
            parts = urlsplit(one)
            if parts.scheme or parts.netloc or where == "404.html":
                continue
            there = path.parent / unquote(parts.path) if parts.path else path
            there = Path(os.path.normpath(there))
            there = there / "index.html" if there.is_dir() else there
            if not there.exists():
                found.append(f"{where}: leads to {one}, which is not there")
            elif (
                parts.fragment and there in read and unquote(parts.fragment) not in read[there].ids
            ):
                found.append(f"{where}: leads to {one}, but that page has no such place")
    return found
