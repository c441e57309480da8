"""A strict reader of Prometheus' text format, written from its page: what promtool and the collector refuse, it does.

https://prometheus.io/docs/instrumenting/exposition_formats/: lines end with a line feed; HELP and TYPE of a metric
stand once, before its samples; these stand together; a label's value escapes backslash, quote and line feed and nothing
else; no sample is there twice.
"""

from __future__ import annotations

import re

_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_HELP = re.compile(rf"# HELP ({_NAME}) ((?:[^\\\n]|\\\\|\\n)*)")
_TYPE = re.compile(rf"# TYPE ({_NAME}) (counter|gauge|histogram|summary|untyped)")
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(,|$)')
_SAMPLE = re.compile(rf"({_NAME})(?:\{{(.*)\}})? (\S+)", re.DOTALL)

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def read_metrics(text: str) -> Samples:
    """(name, labels) -> value. Raises AssertionError at the first line that is not of the format."""
    assert text.endswith("\n"), "the last line has no end"
    samples: Samples = {}
    helped, typed, done = set[str](), set[str](), set[str]()
    current = ""
    for row in text.removesuffix("\n").split("\n"):
        if found := _HELP.fullmatch(row):
            assert found[1] not in helped | done, f"a second HELP or one after samples: {row[:80]}"
            helped.add(found[1])
        elif found := _TYPE.fullmatch(row):
            assert found[1] not in typed | done, f"a second TYPE or one after samples: {row[:80]}"
            typed.add(found[1])
        else:
            name, labels, value = _sample(row)
            if name != current:
                assert name not in done, f"{name} is in two places"
                assert name in helped & typed, f"{name} has no HELP or TYPE before it"
                done, current = done | {name}, name
            assert (name, labels) not in samples, f"a sample twice: {row[:80]}"
            samples[name, labels] = value
    return samples


def _sample(row: str) -> tuple[str, frozenset[tuple[str, str]], float]:
    found = _SAMPLE.fullmatch(row)
    assert found, f"no sample: {row[:80]!r}"
    return found[1], frozenset(_labels(found[2] or "").items()), float(found[3])


def _labels(text: str) -> dict[str, str]:
    labels: dict[str, str] = {}
    place = 0
    while place < len(text):
        found = _LABEL.match(text, place)
        assert found, f"no label: {text[place : place + 80]!r}"
        assert found[1] not in labels, f"{found[1]} twice"
        labels[found[1]] = re.sub(r"\\(.)", lambda m: {"n": "\n"}.get(m[1], m[1]), found[2])
        place = found.end()
    return labels
