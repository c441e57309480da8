"""How the page looks in a real Chromium: on paper, in the dark, on a narrow screen, and whether it can be read."""

from __future__ import annotations

import pytest

from tests.browser import Browser
from tests.render.matrix.in_browser import NAMES, texts

OPENED_AGAIN = 10  # Chromium stores what a page asks it to in its own time, and the next page may be there before


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
    for _ in range(OPENED_AGAIN):
        browser.open(pages[100])
        if browser.js(paper) == dark:
            break
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
