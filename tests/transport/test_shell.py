from __future__ import annotations

import pickle
import subprocess

import pytest

from gpunode.transport.feed import StdinScript
from gpunode.transport.secret import Secret
from gpunode.transport.shell import ARGUMENT_LIMIT_BYTES, deliver, encode

AWKWARD = 'it\'s "q" `b` $x \\n !! % \t ä\n\x7f\x01end\\'


@pytest.mark.parametrize("text", [AWKWARD, "", "plain", "\\0101", "%d %s"])
def test_encode_gives_one_safe_line_and_printf_gives_it_back(text: str) -> None:
    line = encode(text)
    assert not set(line) & set("'!\n")
    shown = subprocess.run(("sh", "-c", 'printf %b "$1"', "sh", line), capture_output=True, check=True)
    assert shown.stdout == text.encode()


@pytest.mark.parametrize(
    ("script", "stdin", "become", "in_argument"),
    [
        ("echo hi", b"", False, True),
        ("echo hi", b"x", False, False),
        ("echo hi", b"", True, False),
        ("#" * ARGUMENT_LIMIT_BYTES + "x", b"", False, False),
    ],
    ids=["a script alone", "with data", "with sudo, which logs arguments", "over the limit"],
)
def test_where_the_script_travels(script: str, stdin: bytes, become: bool, in_argument: bool) -> None:
    delivery = deliver(script, stdin, become=become)
    assert delivery.in_argument is in_argument
    assert (encode(script) in delivery.line) is in_argument


@pytest.mark.parametrize("password", [False, True])
@pytest.mark.parametrize("become", [False, True])
def test_every_login_shell_reads_the_command_alike(become: bool, password: bool) -> None:
    """In single quotes csh ends at a newline and replaces `!`; in fish a backslash is an escape before another."""
    for word in deliver(AWKWARD, b"x", become=become, password=password).argv:
        assert not set(word) & set("'!\n")
        assert "\\\\" not in word
        assert word.isascii()


@pytest.mark.parametrize(
    ("began", "stderr", "sent", "ended"),
    [
        (False, b"", b"", False),
        (False, b"lecture\n[gpunode] password of ann for ann: ", b"word\n", False),
        (True, b"", b"\ngpunode-script:true\ndata", True),
    ],
    ids=["it waits", "the question is answered", "the script goes when sh is there"],
)
def test_feed(began: bool, stderr: bytes, sent: bytes, ended: bool) -> None:
    feed = StdinScript(deliver("true", b"data", become=True, password=True), Secret("word"))
    assert feed.next(began, stderr) == sent
    assert feed.ended is ended


def test_a_second_question_is_not_answered() -> None:
    feed = StdinScript(deliver("true", b"data", become=True, password=True), Secret("word"))
    prompt = b"[gpunode] password of ann for ann: "
    assert feed.next(False, prompt) == b"word\n"
    assert feed.next(False, prompt) == b""
    assert not feed.ended
    assert not feed.refused
    assert feed.next(False, prompt + b"\nSorry, try again.\n" + prompt) == b""
    assert feed.refused
    assert not feed.ended  # the end of input would be an answer as well


def test_a_secret_is_not_shown_or_saved() -> None:
    secret = Secret("open sesame")
    assert "sesame" not in f"{secret} {secret!r} {[secret]}"
    assert secret.reveal() == "open sesame"
    with pytest.raises(TypeError):
        pickle.dumps(secret)
