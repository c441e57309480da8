from __future__ import annotations

import pickle
import shutil
import subprocess

import pytest

from gpunode.transport.feed import StdinScript
from gpunode.transport.secret import Secret
from gpunode.transport.shell import ARGUMENT_LIMIT_BYTES, Delivery, deliver, encode, without_our_words
from gpunode.transport.sudo_password import SudoPassword

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


LONG = f'# {"x" * 50_000}\nread -r line; echo "it ran: $line"\nexit 7\n'
RAN = (b"it ran: \n", 7)
SHELLS = ("sh", "dash", "bash", "busybox sh")


def ended(shell: str, delivery: Delivery, payload: bytes, *, head: str = "/bin/head") -> tuple[bytes, int]:
    """What the script printed between its marks, and the exit status; `head` is where the host has that program."""
    if shutil.which(shell.split()[0]) is None:
        pytest.skip(f"{shell} is not installed")
    line = delivery.argv[2].replace("/usr/bin/head", "/nonexistent/head").replace("/bin/head", head)
    done = subprocess.run([*shell.split(), "-c", line], input=payload, capture_output=True, check=False)
    return done.stdout.partition(b"\n")[2].partition(b"\x1e")[0], done.returncode


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("head", ["/bin/head", "/nonexistent/head", "/bin/false"], ids=["head", "no head", "it fails"])
def test_a_long_script_alone_is_read_whole(shell: str, head: str) -> None:
    delivery = deliver(LONG, b"", argument=False)
    assert ended(shell, delivery, delivery.payload, head=head) == RAN
    assert ended(shell, delivery, b"what an rc file\nleft" + delivery.payload, head=head) == RAN


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("head", ["/bin/head", "/nonexistent/head"], ids=["head", "no head"])
def test_of_a_long_script_that_is_cut_nothing_runs(shell: str, head: str) -> None:
    payload = (delivery := deliver(f"echo begun\n{LONG}", b"", argument=False)).payload
    for cut in (payload[:-2], payload[:30_000], payload[: payload.index(b"echo")], payload[:5]):
        assert ended(shell, delivery, cut, head=head) == (b"", 95)


def test_a_long_script_is_not_read_byte_by_byte_where_nothing_follows() -> None:
    """`read` makes a system call for each byte: 90 ms for the probe under dash. Data behind a script must be left."""
    alone, with_data = (deliver(LONG, data, argument=False) for data in (b"", b"data"))
    assert "head -c" in alone.argv[2]
    assert "head -c" not in with_data.argv[2]
    assert ended("sh", with_data, with_data.payload) == (b"it ran: data\n", 7)


@pytest.mark.parametrize("script", ["true", LONG], ids=["short", "long"])
def test_what_sudo_quotes_of_ours_is_not_the_hosts_word(script: str) -> None:
    line = deliver(script, b"", become=True).argv[-1]
    assert without_our_words(f"Sorry, ann may not execute 'sh -c {line}' as root") == (
        "Sorry, ann may not execute 'sh -c ...' as root"
    )


@pytest.mark.parametrize("password", [False, True])
@pytest.mark.parametrize("become", [False, True])
def test_every_login_shell_reads_the_command_alike(become: bool, password: bool) -> None:
    """In single quotes csh ends at a newline and replaces `!`; in fish a backslash is an escape before another."""
    scripts = ((AWKWARD, b"x"), (LONG, b""))
    deliveries = [deliver(*script, become=become, password=password, argument=False) for script in scripts]
    for word in (word for delivery in deliveries for word in delivery.argv):
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
    feed = StdinScript(deliver("true", b"data", become=True, password=True), SudoPassword(Secret("word")).at_host())
    assert feed.next(began, stderr) == sent
    assert feed.ended is ended


def test_a_second_question_is_not_answered() -> None:
    feed = StdinScript(deliver("true", b"data", become=True, password=True), SudoPassword(Secret("word")).at_host())
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
