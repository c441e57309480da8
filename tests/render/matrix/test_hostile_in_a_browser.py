"""The page in a real Chromium: what a hostile host, or an address that somebody made up, cannot do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gpunode.errors import ExitCode
from gpunode.model.facts import KernelFacts, OsFacts, ToolkitFacts
from gpunode.model.report import HostOutcome
from gpunode.remedy import Remedy, RepairAction
from tests.browser import Browser
from tests.render.matrix.fleets import checked, error, facts, lost, passing
from tests.render.matrix.in_browser import HOST, NAMES, choose, texts, written

PAYLOADS = {
    "an image": '<img src=x onerror="window.pwned=1">',
    "the end of the script": "</script><script>window.pwned=1</script>",
    "a comment": "<!--<script>",
    "an address": "javascript:window.pwned=1",
    "a template": "{{ 7*7 }}{% raw %}${window.pwned=1}",
    "right to left": "\u202egnp.\u2067exe\u200f שלום",
    "line separators": "a\u2028b\u2029c\x00\x1b[31m",
    "10 kB": "x<b>y</b>" * 1200,
    "prototypes": "__proto__",
    "quotes": "\"'`&quot;&#39;=1&host=2#",
}


def hostile(text: str) -> list[HostOutcome]:
    """Hosts whose every text is `text`; two that are well, so that it differs from most."""
    odd = replace(
        facts(text),
        hostname=text,
        product=text,
        os=OsFacts(text, text, pretty_name=text),
        kernel=KernelFacts(text, next_boot=text + "2"),
        toolkit=ToolkitFacts(version=text),
        runtimes=(replace(facts().runtimes[0], name=text, version=text, effective_default=text),),
    )
    found = error("drv.loaded", text, text, text), error(text, text, text, text)
    away = HostOutcome(
        f"away {text}", ExitCode.UNREACHABLE, problem=text, evidence=text, remedy=Remedy(RepairAction.NONE, text)
    )
    return [checked(odd, *found), away, passing(facts("gpu1")), passing(facts("gpu2"))]


@pytest.mark.parametrize("text", PAYLOADS.values(), ids=PAYLOADS)
def test_whatever_a_host_says_stays_text(browser: Browser, text: str, tmp_path: Path) -> None:
    browser.open(written(hostile(text), tmp_path / "page.html"))
    elements = "[...new Set([...document.querySelectorAll('*')].map(one => one.localName))].sort().join(' ')"
    ordinary = None
    for number in range(4):
        browser.js(f"document.querySelectorAll('#rows a')[{number}].click()")
        browser.settle()
        assert browser.js(HOST)
        ordinary = ordinary or browser.js(elements)
        assert not set(browser.js(elements).split()) & {"img", "b", "iframe", "object", "embed", "base", "svg"}
        browser.press("Escape")
    assert browser.js("document.querySelectorAll('script').length") == 2
    assert browser.js("window.pwned === undefined && ({}).x === undefined")
    choose(browser, "filter-column", "kernel")
    choose(browser, "filter-value", str(browser.js("document.getElementById('filter-value').options[1].value")))
    assert len(browser.js(NAMES)) in (1, 2)
    browser.open(browser.js("location.href"))
    assert len(browser.js(NAMES)) in (1, 2), "a filter survives in the address whatever its value"
    assert browser.js("document.documentElement.scrollWidth") == 1400


def test_the_policy_refuses_markup_from_the_page_itself(browser: Browser, pages: dict[int, str]) -> None:
    browser.open(pages[100])
    refused = (
        "(() => { try { document.body.innerHTML = '<img src=x>'; return ''; } catch (error) { return error.name; } })()"
    )
    assert browser.js(refused) == "TypeError"
    browser.js("document.body.append(Object.assign(document.createElement('img'), {src: 'x.png'}))")
    assert any("img-src" in text or "Content Security" in text for text in browser.complaints())
    browser.events.clear()


def test_no_host_at_all(browser: Browser, tmp_path: Path) -> None:
    browser.open(written([], tmp_path / "page.html"))
    assert texts(browser, "#rows") == ["No host is like that."]
    browser.open(written([lost("gpu1")], tmp_path / "page.html"))
    assert browser.js(NAMES) == ["gpu1"]


@pytest.mark.parametrize(
    "address",
    ["#sort=nothing&group=x&standing=y&only=a&only=gpu:&only=:&host=", "#%%%", "#only=kernel:%3Cimg%3E", "#down&odd"],
)
def test_an_address_that_means_nothing_does_no_harm(browser: Browser, pages: dict[int, str], address: str) -> None:
    browser.open(pages[100] + address)
    assert texts(browser, "#tiles button")[0] == "100 All"
