"""A host that answers without end, in forged marks or in impossible packets: an error by name, and bounded memory."""

from __future__ import annotations

import json
import socket
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import paramiko
import pytest
from paramiko.common import AUTH_FAILED, AUTH_PARTIALLY_SUCCESSFUL

from gpunode.transport.answer import ANSWER_LIMIT_BYTES
from tests.hostile.fake_sshd import FakeSshd, Login, fake_sshd, raw_server

TOKEN = b"0123456789abcdef0123456789abcdef"
BEGIN, END = b"\x1egpunode-begin " + TOKEN + b"\n", b"\x1egpunode-end " + TOKEN + b" 0\n"
MOST_BYTES = 64 * 1024 * 1024  # what one host may cost the controller

# In a process of its own, whose memory is then known. Its peak before the talk is what Python and paramiko take.
CLIENT = r"""
import json, re, sys
from pathlib import Path
from gpunode.errors import TransportError
from gpunode.facts.wire import decode
from gpunode.transport.ssh import Ssh
from gpunode.transport.ssh_config import SshOptions, SshTarget
import paramiko, cryptography.hazmat.primitives.asymmetric.x25519

def peak():
    return int(re.search(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text())[1]) * 1024

port, directory, limit_s = int(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3])
ssh = Ssh(SshTarget("127.0.0.1", "root", port), SshOptions(
    home=directory, config=(), known_hosts=(directory / "known_hosts",), identities=(directory / "id",), agent=False))
before, said, size = peak(), "", 0
try:
    done = ssh.run("true", timeout_s=limit_s)
    said, size = f"code {done.code}", len(done.stdout) + len(done.stderr)
    decode(done.stdout)
except TransportError as error:
    said += f"{type(error).__name__}: {error.problem} ({error.evidence})"
ssh.close()
print(json.dumps({"said": said, "size": size, "bytes": peak() - before}))
"""


def ask(port: int, directory: Path, known: str = "", limit_s: float = 600.0) -> tuple[str, int]:
    """What the client says about the host, and how much it answered; its memory is checked here."""
    (directory / "known_hosts").write_text(known)
    if not (directory / "id").exists():
        paramiko.ECDSAKey.generate().write_private_key_file(str(directory / "id"))
    command = (sys.executable, "-c", CLIENT, str(port), str(directory), str(limit_s))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    heard = json.loads(done.stdout)
    assert heard["bytes"] <= MOST_BYTES
    return heard["said"], heard["size"]


def talk(server: FakeSshd, limit_s: float = 600.0) -> tuple[str, int]:
    return ask(server.port, server.directory, server.known_hosts, limit_s)


def endless(first: bytes, piece: bytes, *, stderr: bool = False, window: bool = True) -> Callable[..., None]:
    """Says `first`, then `piece` for ever; without `window` faster than the client allowed."""

    def act(channel: paramiko.Channel, command: bytes) -> None:
        channel.sendall(first)
        channel.sendall_stderr(first)
        if not window:
            channel.out_window_size = 1 << 40
        while True:
            (channel.sendall_stderr if stderr else channel.sendall)(piece)

    return act


ENDLESS = {
    "an answer": (endless(BEGIN, b"|x\n" * 10_000), "printed more than 4 MiB"),
    "an answer of empty lines": (endless(BEGIN, b"|\n" * 16_000), "printed more than 4 MiB"),
    "an answer without a newline": (endless(BEGIN, b"x" * 32_000), "printed more than 4 MiB"),
    "an answer of false ends": (endless(BEGIN, END.replace(b"0", b"1") * 500), "printed more than 4 MiB"),
    "a banner": (endless(b"", b"Welcome!\n" * 3_000), "the login prints without end"),
    "a banner without a newline": (endless(b"", b"W" * 32_000, window=False), "the login prints without end"),
    "error output": (endless(BEGIN, b"E" * 32_000, stderr=True), "error output is longer than 64 MiB"),
    "error output before it begins": (endless(b"", b"E\n" * 16_000, stderr=True), "the login prints without end"),
    "passwords asked for": (
        endless(b"", b"[gpunode] password of root for ann: " * 1_000, stderr=True),
        "the login prints without end",
    ),
}


@pytest.mark.parametrize(("act", "said"), ENDLESS.values(), ids=ENDLESS)
def test_what_has_no_end_is_an_error_by_name(act: Callable[..., None], said: str, tmp_path: Path) -> None:
    with fake_sshd(tmp_path, act) as server:
        assert said in talk(server)[0]
        assert server.gone.wait(60)


@pytest.mark.parametrize("stderr", [False, True])
@pytest.mark.parametrize("early", [False, True], ids=["then", "before the answer to the command"])
def test_more_than_was_granted_ends_the_connection(stderr: bool, early: bool, tmp_path: Path) -> None:
    """What waits to be read is bounded, before anybody reads as well. Who reads meanwhile may see 4 MiB first."""
    flood = endless(BEGIN, b"x" * 32_000, stderr=stderr, window=False)
    with fake_sshd(tmp_path, flood, early=flood if early else None) as server:
        said = talk(server)[0]
        assert "TransportError" in said or "NotReached" in said, said
        assert server.gone.wait(60)


def once(said: bytes, *, error: bytes = b"", status: int | None = 0) -> Callable[..., None]:
    """Says so much, then ends; without `status` it waits for the client to leave."""

    def act(channel: paramiko.Channel, command: bytes) -> None:
        channel.sendall(said)
        channel.sendall_stderr(error)
        if status is not None:
            channel.send_exit_status(status)
            channel.close()

    return act


def test_the_largest_answer_that_is_taken_stays_within_the_memory(tmp_path: Path) -> None:
    lines = "|😀\n|\n".encode()
    count = (ANSWER_LIMIT_BYTES - 80) // len(lines)
    head = b"@gpunode-facts 1\n@ file:/etc/large bytes=%d\n" % (count * len("😀\n\n".encode()))
    whole = head + lines * count + b"@end\n"
    with fake_sshd(tmp_path, once(BEGIN + whole + END)) as server:
        assert talk(server) == ("code 0", len(whole))


FORGED = {
    "an end of another token": (BEGIN + b"x" + END.replace(b"0123", b"3210"), 0, "before its answer was complete"),
    "an end without a token": (BEGIN + b"x\x1egpunode-end  0\n", 0, "before its answer was complete"),
    "an end without a status": (BEGIN + b"x" + END[:-2] + b"\n", 0, "before its answer was complete"),
    "an end of a monstrous status": (
        BEGIN + b"x" + END[:-2] + b"9" * 5000 + b"\n",
        0,
        "before its answer was complete",
    ),
    "an end cut in its status": (BEGIN + b"x" + END[:-1], 0, "before its answer was complete"),
    "an end before the begin": (END + b"x", 0, "runs no commands"),
    "a begin without a token": (b"\x1egpunode-begin \n" + END, 0, "runs no commands"),
    "a begin of a token that is a pattern": (b"\x1egpunode-begin " + b".*" * 16 + b"\n" + END, 0, "runs no commands"),
    "half an answer and a good status": (BEGIN + b"@gpunode-facts 1\n@ os rc=0\n", 0, "before its answer was complete"),
    "nothing": (b"", 255, "runs no commands"),
}


@pytest.mark.parametrize(("said", "status", "words"), FORGED.values(), ids=FORGED)
def test_a_forged_or_missing_mark_makes_no_result(said: bytes, status: int, words: str, tmp_path: Path) -> None:
    with fake_sshd(tmp_path, once(said, status=status)) as server:
        assert words in talk(server)[0]


def test_half_an_answer_and_then_silence_is_told_from_a_cut(tmp_path: Path) -> None:
    with fake_sshd(tmp_path, once(BEGIN + b"half", status=None)) as server:
        said, _ = talk(server, limit_s=8.0)
    assert "StillRunning" in said
    assert "4 bytes came so far" in said


def test_a_forged_mark_inside_an_answer_is_part_of_it(tmp_path: Path) -> None:
    inside = b"one" + END.replace(b"0123", b"3210") + BEGIN + b"two"
    with fake_sshd(tmp_path, once(BEGIN + inside + END + b"three" + END)) as server:
        said, size = talk(server)
    assert said.startswith("code 0")
    assert size == len(inside)


def test_escapes_in_a_refusal_are_not_repeated(tmp_path: Path) -> None:
    with fake_sshd(tmp_path, once(b"\x1b[2J\x1b]0;owned\x07no\x9b1m", error=b"\x1b[31mgo\x00\r\n", status=1)) as server:
        said, _ = talk(server)
    assert "runs no commands" in said
    assert not any(ord(letter) < 32 or 127 <= ord(letter) < 160 for letter in said)


def second_proof(transport: paramiko.Transport) -> int:
    return AUTH_PARTIALLY_SUCCESSFUL


def questions(transport: paramiko.Transport) -> int:
    """Keyboard-interactive questions that nobody asked for, as many as a packet holds."""
    for _ in range(50):
        ask = paramiko.Message()
        ask.add_byte(bytes([60]))  # SSH_MSG_USERAUTH_INFO_REQUEST
        for text in ("name", "instruction", ""):
            ask.add_string(text)
        ask.add_int(1 << 31)
        transport._send_message(ask)  # type: ignore[attr-defined]
    return AUTH_FAILED


@pytest.mark.parametrize(
    ("login", "said"),
    [(second_proof, "asks for a second proof"), (questions, "")],
    ids=["a second proof for ever", "questions without end"],
)
def test_a_login_without_end_is_refused(login: Login, said: str, tmp_path: Path) -> None:
    with fake_sshd(tmp_path, once(b""), login) as server:
        heard, _ = talk(server)
    assert heard.startswith("NotReached")
    assert said in heard


def flood(piece: bytes) -> Callable[[socket.socket], None]:
    def say(link: socket.socket) -> None:
        while True:
            link.sendall(piece)

    return say


def huge_packet(link: socket.socket) -> None:
    link.sendall(b"SSH-2.0-OpenSSH_9.2\r\n" + struct.pack(">I", 0xFFFFFFFC))
    flood(b"\0" * 65536)(link)


@pytest.mark.parametrize(
    "say",
    [flood(b"Welcome " * 1000), flood(b"Welcome\r\n" * 1000), huge_packet],
    ids=["a banner that never ends its line", "a banner of lines without end", "a packet of 4 GiB"],
)
def test_what_no_ssh_server_says_before_the_host_key_is_bounded(
    say: Callable[[socket.socket], None], tmp_path: Path
) -> None:
    with raw_server(say) as port:
        said, _ = ask(port, tmp_path)
    assert "no SSH session came about" in said
