"""The page in a real Chromium without a network: what a person does with it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gpunode.model.report import Finding
from tests.browser import Browser
from tests.render.matrix.fleets import checked, error, facts, lost, passing
from tests.render.matrix.in_browser import HOST, NAMES, choose, column, texts, written


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


def test_a_check_that_only_follows_from_another_is_found_by_the_filter(browser: Browser, tmp_path: Path) -> None:
    live = error("rt.docker-live", "the running dockerd has no nvidia runtime", "-")
    cause = error("ctk.installed", "the toolkit is missing", "-")
    assert isinstance(live.outcome, Finding)
    assert isinstance(cause.outcome, Finding)
    cause = replace(cause, outcome=replace(cause.outcome, consequences=(live.id,)))
    follows = replace(live, outcome=replace(live.outcome, cause=cause.id))
    hosts = [checked(facts("a"), cause, follows), checked(facts("b"), live), passing(facts("c"))]
    browser.open(written(hosts, tmp_path / "fleet.html"))
    choose(browser, "filter-column", "check")
    assert texts(browser, "#filter-value option")[1:] == ["ctk.installed (1)", "rt.docker-live (2)"]
    choose(browser, "filter-value", "rt.docker-live")
    assert browser.js(NAMES) == ["a", "b"]
    browser.open(f"{(tmp_path / 'fleet.html').as_uri()}#host=a")
    assert texts(browser, "dialog dd.so") == ["rt.docker-live: the running dockerd has no nvidia runtime"]


def test_a_host_without_a_report_is_found_by_the_check_that_it_fails(browser: Browser, tmp_path: Path) -> None:
    unread = replace(lost("c"), check_id="")
    hosts = [checked(facts("a"), error("ctk.installed", "the toolkit is missing", "-")), lost("b"), unread]
    browser.open(written(hosts, tmp_path / "fleet.html"))
    choose(browser, "filter-column", "check")
    assert texts(browser, "#filter-value option")[1:] == ["ctk.installed (1)", "fleet.ssh-sudo (1)"]
    choose(browser, "filter-value", "fleet.ssh-sudo")
    assert browser.js(NAMES) == ["b"]


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


def test_a_scroll_drops_no_search(browser: Browser, pages: dict[int, str]) -> None:
    browser.open(pages[100])
    browser.js(
        "(() => { const search = document.getElementById('search'); search.value = 'gpu17.';"
        " search.dispatchEvent(new Event('input', {bubbles: true}));"
        " document.getElementById('scroll').dispatchEvent(new Event('scroll')); })()"
    )
    browser.settle()
    assert browser.js(NAMES) == ["gpu17.rack2.example"]
