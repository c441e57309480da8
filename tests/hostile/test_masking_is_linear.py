"""Masking costs as much as its input is long: eight times the text, at most 24 times the CPU."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpunode.editing.diff import unified
from gpunode.facts.recordings import mask_secrets
from gpunode.masking import masked
from tests.hostile.linear import assert_linear

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
    *("machine a login b ", "machine ", "default login ", "github_pat_", "hf_aaaaaaaaaa"),
    *("arg=--token\n", "argv[]=--token ", "Exec=--token ", "name: token\nvalue: x\n", '\\"', "[a.", "http://a:b/"),
    *(
        "? token\n: a\n",
        "? ",
        "?\n",
        ": ",
        "? a\n",
        "{? token : a}",
        "[? a : ",
        "*a ",
        "*a:",
        "!a ",
        "&a token: ",
        "- ? ",
    ),
    *('"to\\u006ben": a ', '"to\\x6ben": a\n', "\\u006b", "\\x6b", "\\U0000006b", "a\\u006b", '"\\u006b": {'),
    *(
        "curl -u a:b ",
        "curl ",
        "curl -u ",
        "curl -u\n",
        "curl -s",
        "-u:",
        "-sS",
        "curl -u '",
        'curl -u a:"',
        "curl -u \\\n",
    ),
    *(
        "mysql -pa ",
        "mysql -p'",
        "sshpass -p a ",
        "docker login -p a ",
        "docker run -p 1:2 login -p ",
        "ctr i pull -u a:b ",
    ),
    *(
        "curl\n- -u\n- a:b\n",
        "arg=curl\narg=-u\narg=a:b\n",
        "Exec=curl -u a \\\n",
        '"curl", "-u", "a:b", ',
        "curl; -u a | ",
    ),
    *("- - - curl\n", "- curl\n", "- -u\n", "curl: -u ", "sudo login -p ", "--token \\\n", "k3s -t a "),
    *("aaaaaa.aaaaaaaaaaaaaaaa", "token = 'a\n", "x = [\n", "\t", "a=b,c://", "e@a:", "Cookie: ", "{#a\n"),
    *("e@a:1,", "a[1,", "e@a[1-2]:1,[::1]:1,", "a,@"),
]


def grows_as_its_input(work: Callable[[str], object], brick: str) -> None:
    assert_linear(work, lambda size: brick * (size // len(brick)), short=3000)


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


@pytest.mark.parametrize("value", ["--x=" + "a" * 60, "a" * 60, "\\a" * 60, "\\\\" * 60, "x: y " * 20])
@pytest.mark.parametrize("where", ["a:\n - {}", "- {}\n", "a: {}\n", "{}\n"])
def test_a_quoted_value_that_is_no_key_is_not_tried_in_all_ways(where: str, value: str) -> None:
    """Twice the work for each further letter: at sixty it never ended."""
    assert masked(where.format(f'"{value}"'), "yaml")


@pytest.mark.parametrize(
    "text", ['"' + "a" * 60, '"' + "a" * 60 + '"', '"' + "a" * 60 + '" b', 'a."' + "\\a" * 60 + '" b = 1']
)
def test_a_quoted_text_that_is_no_key_of_toml_is_not_tried_in_all_ways(text: str) -> None:
    assert masked(text, "toml")
