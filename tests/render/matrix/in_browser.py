"""What tests do with a page of the fleet in a browser."""

from __future__ import annotations

import json
from pathlib import Path

from gpunode.model.report import HostOutcome
from gpunode.render.matrix.page import matrix_html
from tests.browser import Browser
from tests.render.matrix.fleets import AT_S

NAMES = "[...document.querySelectorAll('#rows tr[data-number] a')].map(a => a.textContent)"
HOST = "document.querySelector('dialog[open] h2')?.textContent"


def written(outcomes: list[HostOutcome], path: Path) -> str:
    path.write_text(matrix_html(outcomes, at_s=AT_S, seconds_s=41.0, ssh=True), encoding="utf-8")
    return path.as_uri()


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
