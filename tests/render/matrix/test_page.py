"""The page is one file: its policy fits what is in it, its data is data, and no secret of a host is there."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from typing import Any

import pytest

from gpunode.model.facts import OsFacts
from gpunode.model.report import HostOutcome
from gpunode.render.door import cleaned, encodable
from gpunode.render.matrix.page import in_script, matrix_html
from tests.render.hostile import HOSTILE, SECRET, lost_outcome, odd_outcome
from tests.render.matrix.fleets import AT_S, facts, fleet, passing


def page(outcomes: list[HostOutcome]) -> str:
    return matrix_html(outcomes, at_s=AT_S, seconds_s=3.1, ssh=True)


def data_of(html: str) -> dict[str, Any]:
    (block,) = re.findall(r'<script type="application/json" id="fleet">(.*?)</script>', html, re.DOTALL)
    return dict(json.loads(block))


def test_the_policy_names_the_script_and_the_style_and_nothing_else() -> None:
    html = page(fleet(30))
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]+)"', html)
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules == {
        "default-src": "'none'",
        "style-src": _source(html, "style"),
        "script-src": _source(html, "script"),
        "base-uri": "'none'",
        "form-action": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "'none'",
    }
    assert not re.search(r"\son[a-z]+=|\sstyle=|javascript:|https?://|@import|url\(", html)


def _source(html: str, tag: str) -> str:
    (text,) = re.findall(f"<{tag}>(.*?)</{tag}>", html, re.DOTALL)
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_whatever_a_host_says_the_page_is_whole_and_bounded(text: str) -> None:
    html = page([odd_outcome(text), lost_outcome(text), *fleet(3)])
    assert len(data_of(html)["hosts"]) == 5
    assert html.count("<script") == 2
    assert html.count("</script") == 2
    assert len(html) < 200_000
    html.encode("utf-8")


def test_nothing_in_the_data_is_markup_for_a_parser_of_html() -> None:
    said = '</script><!--<script>&amp;\u2028\u2029<img src=x onerror="x()">'
    written = in_script(json.dumps([said]))
    assert not re.search("[<>&]", written)
    assert json.loads(written) == [said]


def test_secrets_do_not_get_there() -> None:
    html = page([odd_outcome(f"dnf says {SECRET}"), lost_outcome(f"{SECRET}: refused")])
    assert "hunter2" not in html
    assert "dnf says" in html


def test_a_secret_is_not_half_there_where_its_text_is_cut() -> None:
    assert "password=h" not in page([odd_outcome("x" * length + " " + SECRET) for length in range(100, 520, 3)])


def test_secrets_of_facts_do_not_get_there() -> None:
    host = replace(facts("gpu1"), product=f"a {SECRET}", os=OsFacts("x", "1", pretty_name=f"b {SECRET}"))
    html = page([passing(host), passing(facts(f"c-{SECRET}"))])
    assert "hunter2" not in html
    assert all(word in html for word in ("a password=", "b password=", "c-password="))


def test_the_way_out_changes_nothing_of_the_page() -> None:
    html = page([odd_outcome(text) for text in ("日本\u202e🙂", *list(HOSTILE.values())[:7])])
    assert cleaned(html, painted=False) == html
    assert encodable(html, "ascii") == html
    assert any(one["summary"].endswith("🙂") for one in data_of(html)["findings"])


def test_no_host_at_all_is_a_page_as_well() -> None:
    assert data_of(page([]))["hosts"] == []


def test_two_runs_over_the_same_hosts_are_the_same_page() -> None:
    assert page(fleet(100)) == page(fleet(100))
