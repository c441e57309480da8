"""The page in a real Chromium without a network: what a person does with it, and what a hostile host cannot do."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gpunode.errors import ExitCode
from gpunode.model.facts import KernelFacts, OsFacts, ToolkitFacts
from gpunode.model.report import HostOutcome
from gpunode.remedy import Remedy, RepairAction
from gpunode.render.matrix.page import matrix_html
from tests.browser import Browser, chromium, started
from tests.render.matrix.fleets import AT_S, checked, error, facts, fleet, lost, passing

NAMES = "[...document.querySelectorAll('#rows tr[data-number] a')].map(a => a.textContent)"
HOST = "document.querySelector('dialog[open] h2')?.textContent"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    program = chromium()
    if program is None:
        why = "no Chromium, which shows the fleet's page: apt-get install chromium"
        if os.environ.get("GPUNODE_BROWSER_REQUIRED") == "1":
            pytest.fail(why)
        pytest.skip(why)
    with started(program, tmp_path_factory.mktemp("chromium") / "profile") as one:
        yield one


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[int, str]:
    """Number of hosts -> address of their page."""
    directory = tmp_path_factory.mktemp("pages")
    return {number: written(fleet(number), directory / f"{number}.html") for number in (100, 1000, 5000)}


def written(outcomes: list[HostOutcome], path: Path) -> str:
    path.write_text(matrix_html(outcomes, at_s=AT_S, seconds_s=41.0, ssh=True), encoding="utf-8")
    return path.as_uri()


@pytest.fixture(autouse=True)
def _quiet(browser: Browser) -> Iterator[None]:
    """No test may end with an error on the console, a refusal of the policy or a request."""
    browser.resize(1400, 900)
    browser.emulate()
    yield
    assert browser.complaints() == []


def texts(browser: Browser, selector: str) -> list[str]:
    return list(browser.js(f"[...document.querySelectorAll({json.dumps(selector)})].map(one => one.textContent)"))


def choose(browser: Browser, select: str, value: str) -> None:
    browser.js(
        f"(() => {{ const one = document.getElementById({json.dumps(select)}); one.value = {json.dumps(value)};"
        " one.dispatchEvent(new Event('change', {bubbles: true})); })()"
    )
    browser.settle()


def column(browser: Browser, key: str) -> list[str]:
    """Its cells from the top, without the marks before them and the words for screen readers behind."""
    script = (
        "one => [...one.childNodes].filter(n => !n.className?.match(/mark|hidden/)).map(n => n.textContent).join('')"
    )
    return list(browser.js(f"[...document.querySelectorAll('#rows .of-{key}')].map({script})"))


def test_it_opens_with_the_worst_hosts_first(browser: Browser, pages: dict[int, str]) -> None:
    browser.open(pages[100])
    assert texts(browser, "#rows .pill")[:6] == ["no answer", "fails 1", "fails 1", "warns 1", "warns 1", "passes"]
    assert browser.js(NAMES)[:2] == ["gpu90.rack6.example", "gpu17.rack2.example"]
    assert texts(browser, ".of-why") == ["connection timed out"]
    assert texts(browser, "#tiles button") == [
        "100 All",
        "1 No answer",
        "2 Fail",
        "2 Warn",
        "95 Pass",
        "5 Differ from most",
    ]


def test_the_table_is_one_for_screen_readers(browser: Browser, pages: dict[int, str]) -> None:
    browser.open(pages[1000])
    assert browser.js("document.querySelector('#hosts').getAttribute('aria-rowcount')") == "1001"
    assert browser.js("[...document.querySelectorAll('#head th')].every(one => one.scope === 'col')")
    assert browser.js("[...document.querySelectorAll('#rows tr[data-number] th')].every(one => one.scope === 'row')")
    assert browser.js("document.querySelector('#rows tr[data-number]').getAttribute('aria-rowindex')") == "2"
    unnamed = "[...document.querySelectorAll('input, select')].filter(one => !one.labels.length).length"
    assert browser.js(unnamed) == 0


def test_a_heading_sorts_and_says_so(browser: Browser, pages: dict[int, str]) -> None:
    browser.open(pages[100])
    browser.click("#head .of-driver button")
    known = [cell for cell in column(browser, "driver") if cell]
    assert (known[0], known[-1]) == ("580.95.05", "595.91.07")
    assert texts(browser, "#rows .pill")[-1] == "no answer"
    assert browser.js("document.querySelector('#head .of-driver').getAttribute('aria-sort')") == "ascending"
    browser.click("#head .of-driver button")
    assert column(browser, "driver")[0] == "595.91.07"
    assert browser.js("document.querySelector('#head .of-driver').getAttribute('aria-sort')") == "descending"
    assert texts(browser, "#rows .pill")[-1] == "no answer", "what is not known is last in either direction"
    browser.click("#head .of-host button")
    assert browser.js(NAMES)[8:11] == ["gpu9.rack1.example", "gpu10.rack1.example", "gpu11.rack1.example"]


def test_what_differs_from_most_is_marked_by_a_sign_and_in_words(browser: Browser, pages: dict[int, str]) -> None:
    browser.open(pages[100])
    browser.click(".tile.differ")
    assert len(browser.js(NAMES)) == 5
    marked = texts(browser, "#rows td.odd")
    assert len(marked) == 6
    assert "◆7 × H100 SXM5 80GB (differs from most)" in marked
    titles = browser.js("[...document.querySelectorAll('#rows td.odd')].map(one => one.title)")
    assert "7 × H100 SXM5 80GB (most have 8 × H100 SXM5 80GB: 66 of 67)" in titles


def test_another_group_is_another_majority(browser: Browser, pages: dict[int, str]) -> None:
    browser.open(pages[100])
    assert "L40S" not in "".join(texts(browser, "#rows td.odd"))
    choose(browser, "group", "all")
    assert texts(browser, "#rows td.odd.of-gpu").count("◆4 × L40S (differs from most)") == 32
    browser.open(f"{pages[100]}#group=all")
    assert len(texts(browser, "#rows td.odd.of-gpu")) == 33


def test_the_search_finds_hosts_versions_and_findings(browser: Browser, pages: dict[int, str]) -> None:
    browser.open(pages[1000])
    browser.press("/")
    browser.type("580.95 H100")
    assert len(browser.js(NAMES)) == 11
    assert texts(browser, "#count") == ["11 of 1,000 hosts"]
    browser.js("document.getElementById('search').select()")
    browser.type("FALLEN off")
    assert set(column(browser, "failing")) == {"pci.gpu-count"}
    browser.js("document.getElementById('search').select()")
    browser.type("no such thing")
    assert texts(browser, "#rows") == ["No host is like that."]


def test_filters_widen_within_a_column_and_narrow_across(browser: Browser, pages: dict[int, str]) -> None:
    browser.open(pages[100])
    choose(browser, "filter-column", "gpu")
    assert "7 × H100 SXM5 80GB (1)" in texts(browser, "#filter-value option")
    choose(browser, "filter-value", "4 × L40S")
    assert len(browser.js(NAMES)) == 32
    choose(browser, "filter-column", "gpu")
    choose(browser, "filter-value", "7 × H100 SXM5 80GB")
    assert len(browser.js(NAMES)) == 33
    choose(browser, "filter-column", "check")
    choose(browser, "filter-value", "pci.gpu-count")
    assert browser.js(NAMES) == ["gpu44.rack3.example"]
    assert texts(browser, ".chip") == ["GPU: 4 × L40S ×", "GPU: 7 × H100 SXM5 80GB ×", "Check: pci.gpu-count ×"]
    address = browser.js("location.href")
    for _ in range(3):
        browser.click(".chip")
    assert len(browser.js(NAMES)) == 100
    browser.open(address)
    assert browser.js(NAMES) == ["gpu44.rack3.example"]


def test_a_link_opens_a_host_with_evidence_remedy_and_what_most_have(browser: Browser, pages: dict[int, str]) -> None:
    browser.open(f"{pages[1000]}#host=gpu17.rack2.example")
    assert browser.js(HOST) == "gpu17.rack2.example"
    assert texts(browser, "dialog .finding code") == ["rt.effective-default"]
    assert texts(browser, "dialog dd.evidence") == ['default "runc"']
    assert texts(browser, "dialog dd.remedy") == ["gpunode setup --ssh gpu17.rack2.example --only runtime"]
    assert "Default handler◆runcnvidia (656 of 667)" in texts(browser, "dialog .values tr")
    browser.press("Escape")
    assert browser.js(HOST) is None
    assert "host=" not in browser.js("location.href")
    browser.open(f"{pages[1000]}#host=nobody")
    assert browser.js(HOST) is None


def test_a_host_that_did_not_answer_has_a_page_with_the_reason(browser: Browser, pages: dict[int, str]) -> None:
    browser.open(f"{pages[100]}#host=gpu90.rack6.example")
    assert texts(browser, "dialog .finding p") == ["connection timed out"]
    assert texts(browser, "dialog dd") == ["no answer from 10.0.3.7 port 22 within 10 s", "look at its console"]


def test_all_of_it_by_keys_alone(browser: Browser, pages: dict[int, str]) -> None:
    browser.open(pages[1000])
    focus = "document.activeElement.textContent"
    for _ in range(60):
        browser.press("Tab")
        if browser.js("document.activeElement.closest('#rows') !== null"):
            break
    assert browser.js(focus) == "gpu90.rack6.example", "one row is a stop of the Tab key, the first"
    browser.press("ArrowDown")
    browser.press("ArrowDown")
    assert browser.js(focus) == "gpu270.rack17.example"
    browser.press("Enter")
    assert browser.js(HOST) == "gpu270.rack17.example"
    assert browser.js("document.activeElement.id") == "close"
    browser.press("Escape")
    assert browser.js(HOST) is None
    assert browser.js(focus) == "gpu270.rack17.example", "the focus is where it was"
    browser.press("End")
    assert browser.js(focus) == "gpu1000.rack63.example"
    browser.press("Enter")
    assert browser.js(HOST) == "gpu1000.rack63.example"
    browser.press("Escape")
    browser.press("Home")
    browser.press("ArrowUp")
    assert browser.js(focus) == "gpu90.rack6.example"
    browser.press("PageDown")
    assert browser.js("document.activeElement.closest('#rows') !== null")


def test_from_host_to_host_in_the_order_of_the_table(browser: Browser, pages: dict[int, str]) -> None:
    browser.open(f"{pages[100]}#standing=fail&host=gpu17.rack2.example")
    assert texts(browser, ".steps button:disabled") == ["Previous"]
    browser.click(".steps button:nth-child(2)")
    assert browser.js(HOST) == "gpu44.rack3.example"
    assert texts(browser, ".steps button:disabled") == ["Next"]
    browser.click("#close")
    assert browser.js("document.activeElement.textContent") == "gpu44.rack3.example"


@pytest.mark.parametrize("number", [1000, 5000])
def test_of_many_hosts_those_in_sight_are_drawn(browser: Browser, pages: dict[int, str], number: int) -> None:
    browser.open(pages[number])
    took_ms = browser.js("performance.getEntriesByType('navigation')[0].domComplete")
    print(f"{number} hosts: {Path(pages[number][7:]).stat().st_size / 1e6:.1f} MB, shown after {took_ms:.0f} ms")
    assert len(browser.js(NAMES)) < 150
    assert browser.js("document.querySelectorAll('*').length") < 6000
    widths = "[...document.querySelectorAll('#head th')].map(one => Math.round(one.getBoundingClientRect().width))"
    before = browser.js(widths)
    browser.js("document.getElementById('scroll').scrollTop = 1e9")
    browser.settle()
    assert browser.js(NAMES)[-1] == f"gpu{number}.rack{number // 16 + 1}.example"
    assert browser.js(widths) == before, "columns keep their widths whatever is in sight"
    rows = browser.js(
        "document.getElementById('scroll').scrollHeight / document.querySelector('tr[data-number]').offsetHeight"
    )
    assert abs(rows - number) < 3, "the scroll bar is as long as all rows together"
    browser.click("#head .of-host button")
    assert browser.js(NAMES)[0] == "gpu1.rack1.example"


def test_paper_has_every_row_and_the_screen_has_its_own_again(browser: Browser, pages: dict[int, str]) -> None:
    browser.open(f"{pages[1000]}#search=rack1")
    browser.js(f"addEventListener('beforeprint', () => {{ window.printed = {NAMES}.length; }})")
    all_of_them = int(texts(browser, "#count")[0].split()[0])
    on_screen = len(browser.js(NAMES))
    assert on_screen < all_of_them
    pdf = browser.pdf()
    assert browser.js("window.printed") == all_of_them
    assert pdf.count(b"/Type /Page\n") > 3
    assert len(browser.js(NAMES)) == on_screen
    browser.emulate(media="print", dark=True)
    assert browser.js("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert browser.js("getComputedStyle(document.getElementById('controls')).display") == "none"


# The contrast of every text that is seen with what is behind it (WCAG 2.2, 1.4.3: at least 4.5), the lowest first.
CONTRAST = """(() => {
  const parts = text => (text.match(/[\\d.]+/g) || []).map(Number);
  const linear = v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = c => 0.2126 * linear(c[0]) + 0.7152 * linear(c[1]) + 0.0722 * linear(c[2]);
  const behind = one => { for (; one; one = one.parentElement) {
    const c = parts(getComputedStyle(one).backgroundColor); if (c.length === 3 || c[3] === 1) return c; }
    return [255, 255, 255]; };
  const open = document.querySelector('dialog[open]');
  return [...(open || document.body).querySelectorAll('*')].filter(one => one.getClientRects().length
    && !one.closest(':disabled, .hidden') && [...one.childNodes].some(n => n.nodeType === 3 && n.textContent.trim())
  ).map(one => {
    const [a, b] = [light(parts(getComputedStyle(one).color)), light(behind(one))].sort((x, y) => y - x);
    return [(a + 0.05) / (b + 0.05), `${one.tagName}.${one.className}: ${one.textContent.slice(0, 30)}`];
  }).sort((x, y) => x[0] - y[0]);
})()"""


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize(
    "host", ["", "host=gpu17.rack2.example", "host=gpu31.rack2.example", "host=gpu90.rack6.example"]
)
def test_every_text_can_be_read(browser: Browser, pages: dict[int, str], host: str, dark: bool) -> None:
    browser.emulate(dark=dark)
    browser.open(f"{pages[100]}#{host}")
    found = browser.js(CONTRAST)
    assert len(found) > 5
    assert found[0][0] >= 4.5, found[:5]


def test_light_and_dark_by_the_system_and_by_the_button(browser: Browser, pages: dict[int, str]) -> None:
    browser.open(pages[100])
    paper = "getComputedStyle(document.body).backgroundColor"
    light = browser.js(paper)
    browser.emulate(dark=True)
    dark = browser.js(paper)
    assert light != dark
    browser.click("#theme")
    assert (texts(browser, "#theme"), browser.js(paper)) == (["Theme: light"], light)
    browser.click("#theme")
    browser.emulate()
    assert (texts(browser, "#theme"), browser.js(paper)) == (["Theme: dark"], dark)
    browser.open(pages[100])
    assert browser.js(paper) == dark, "the choice is kept"
    browser.click("#theme")
    assert (texts(browser, "#theme"), browser.js(paper)) == (["Theme: auto"], light)


@pytest.mark.parametrize("address", ["", "#host=gpu17.rack2.example"], ids=["table", "host"])
def test_a_narrow_screen_needs_no_scrolling_sideways(browser: Browser, pages: dict[int, str], address: str) -> None:
    browser.resize(400, 800)
    browser.open(pages[1000] + address)
    assert browser.js("[innerWidth, document.documentElement.scrollWidth]") == [400, 400]
    seen = browser.js("document.getElementById('scroll').clientHeight")
    assert seen > 300, "the table has most of the screen"


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
