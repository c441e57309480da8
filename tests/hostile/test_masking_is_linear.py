"""Masking costs as much as its input is long: eight times the text, at most 24 times the CPU."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from gpunode.facts.recordings import mask_secrets
from gpunode.masking import masked
from gpunode.runtimes.diffs import unified

# Each is repeated: what one of the old expressions, or one of the new, could go over again and again.
BRICKS = [
    *(
        "a",
        "token",
        "token=",
        "token=a ",
        '"token=a" ',
        "a:",
        "a://",
        "a://@",
        "@",
        "a@",
        "#",
        "\\",
        '"',
        "'",
        "[",
        "{",
    ),
    *(
        "]",
        "- ",
        "--a",
        "--token ",
        "--token=[",
        '"a":',
        '{"token":',
        "eyJaaaaaaaa-",
        "K10",
        "basic ",
        "\n",
        "token:\n",
    ),
    *("token: |\n a\n", " ", "token=[", '"""', "'''", "-----BEGIN PRIVATE KEY-----", "a.", "::", "a::b", "x:y@z "),
    *("arg=--token\n", "argv[]=--token ", "Exec=--token ", "name: token\nvalue: x\n", '\\"', "[a.", "http://a:b/"),
    *("aaaaaa.aaaaaaaaaaaaaaaa", "token = 'a\n", "x = [\n", "\t", "a=b,c://", "e@a:", "Cookie: ", "{#a\n"),
]
SMALL, TIMES = 3000, 8


def cpu_s(work: Callable[[str], object], text: str) -> float:
    """The least of several tries: noise only ever adds."""
    best = 1e9
    for _ in range(3):
        begun = time.process_time()
        work(text)
        best = min(best, time.process_time() - begun)
    return best


def grows_as_its_input(work: Callable[[str], object], brick: str) -> None:
    """Quadratic growth costs 64 times as much. What takes under 10 ms in all is not worth a verdict."""
    small = brick * (SMALL // len(brick))
    large = cpu_s(work, small * TIMES)
    assert large < 0.01 or large <= 24 * max(cpu_s(work, small), 0.0005), f"{brick!r} x {TIMES}: {large:.3f} s"


@pytest.mark.parametrize("form", ["", "json", "toml", "yaml"])
@pytest.mark.parametrize("brick", BRICKS)
def test_masking_is_linear(brick: str, form: str) -> None:
    grows_as_its_input(lambda text: masked(text, form), brick)


@pytest.mark.parametrize("brick", ["a", "token", "a://"])
def test_a_recorded_section_is_masked_in_linear_time(brick: str) -> None:
    grows_as_its_input(mask_secrets, brick)


@pytest.mark.parametrize("brick", ["token", '"auth', "password="])
def test_one_long_line_is_shown_in_a_diff_in_linear_time(brick: str) -> None:
    grows_as_its_input(lambda text: unified("/etc/x", "", text), brick)
