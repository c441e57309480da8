"""The manual as a site: built without a warning, no dead link, nothing from elsewhere, readable in a real Chromium."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser import Browser, for_tests

from .commands import ROOT

LINKS = ROOT / "scripts" / "manual" / "links.py"


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("manual") / "site"
    told = subprocess.run(
        (sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(directory)),
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (told.returncode, told.stdout, told.stderr) == (0, "", "")
    return directory


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with for_tests(tmp_path_factory.mktemp("chromium"), "the manual") as one:
        yield one


def follow(site: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run((sys.executable, str(LINKS), str(site)), capture_output=True, text=True, check=False)


def test_every_link_leads_somewhere_and_nothing_comes_from_elsewhere(site: Path) -> None:
    told = follow(site)
    assert told.returncode == 0, told.stdout
    assert "no dead link, nothing from elsewhere" in told.stdout


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('<a href="gone.html">x</a>', "page.html: gone.html: no such page"),
        ('<a href="#gone">x</a>', "page.html: #gone: no such place on that page"),
        (
            '<script src="https://example.com/x.js"></script>',
            "page.html: fetches https://example.com/x.js from elsewhere",
        ),
        ('<link rel="stylesheet" href="gone.css">', "page.html: fetches gone.css, which is not there"),
    ],
    ids=["a page", "a place", "a script", "a style"],
)
def test_what_leads_nowhere_is_found(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "page.html").write_text(text)
    told = follow(tmp_path)
    assert (told.returncode, told.stdout.strip()) == (1, said)


def test_each_verb_has_a_page_with_each_of_its_options(site: Path) -> None:
    from gpunode.cli.commands import VERBS, _tree

    tree = _tree()
    for verb in VERBS:
        page = (site / "reference" / "commands" / f"{verb}.html").read_text(encoding="utf-8")
        options = {name for parameter in tree.commands[verb].params for name in parameter.opts}  # type: ignore[attr-defined]
        assert [name for name in options if name.startswith("--") and name not in page] == []


def test_no_page_is_wider_than_a_narrow_screen(browser: Browser, site: Path) -> None:
    browser.resize(400, 900)
    wide = {}
    for page in sorted(site.rglob("*.html")):
        browser.open(page.as_uri())
        width = browser.js("document.documentElement.scrollWidth")
        if width > 400:
            wide[page.relative_to(site).as_posix()] = width
    assert wide == {}


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_it_opens_from_a_disk_as_light_or_dark_as_the_system_is_and_asks_nobody(
    browser: Browser, site: Path, dark: bool
) -> None:
    browser.emulate(dark=dark)
    browser.resize(1400, 900)
    browser.open((site / "index.html").as_uri())
    colours = browser.js("getComputedStyle(document.body).backgroundColor").removeprefix("rgb(").rstrip(")").split(", ")
    assert (sum(map(int, colours)) < 300) == dark
    assert [said for said in browser.complaints() if not said.startswith("request for data:")] == []


def test_it_is_searched_without_a_server(browser: Browser, site: Path) -> None:
    browser.resize(1400, 900)
    browser.open((site / "index.html").as_uri())
    browser.js("document.querySelector('[data-md-component=search-query]').focus()")
    browser.type("nouveau")
    found = browser.js(
        """new Promise((done, fail) => {
             const until = Date.now() + 60000
             const look = () => {
               const links = [...document.querySelectorAll('.md-search-result__link')].map(one => one.href)
               if (links.length) done(links)
               else if (Date.now() > until) fail(new Error('nothing was found'))
               else setTimeout(look, 100)
             }
             look()
           })"""
    )
    assert any("/how-to/troubleshooting.html" in link for link in found)
    assert [said for said in browser.complaints() if not said.startswith("request for data:")] == []
