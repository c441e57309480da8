from __future__ import annotations

import base64
import hashlib
import hmac
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from gpunode.errors import TransportError
from gpunode.transport.known_hosts import HostKey, Trust, accept_new, host_name, load, parse

KEY = HostKey("ssh-ed25519", b"\x00\x00\x00\x0bssh-ed25519" + b"k" * 32)
OTHER = HostKey("ssh-ed25519", b"\x00\x00\x00\x0bssh-ed25519" + b"o" * 32)
RSA = HostKey("ssh-rsa", b"\x00\x00\x00\x07ssh-rsa" + b"r" * 200)


def words(key: HostKey) -> str:
    return f"{key.type} {base64.b64encode(key.blob).decode()}"


def hashed(name: str) -> str:
    digest = hmac.new(b"salt", name.encode(), hashlib.sha1).digest()
    return f"|1|{base64.b64encode(b'salt').decode()}|{base64.b64encode(digest).decode()}"


@pytest.mark.parametrize(
    ("line", "name", "trust"),
    [
        (f"gpu07 {words(KEY)}", "gpu07", Trust.KNOWN),
        (f"gpu07,10.0.0.7 {words(KEY)} a comment", "10.0.0.7", Trust.KNOWN),
        (f"GPU07 {words(KEY)}", "gpu07", Trust.KNOWN),
        (f"gpu07 {words(OTHER)}", "gpu07", Trust.CHANGED),
        (f"gpu07 {words(RSA)}", "gpu07", Trust.CHANGED),
        (f"gpu07 {words(OTHER)}\ngpu07 {words(KEY)}", "gpu07", Trust.KNOWN),
        (f"gpu07 {words(KEY)}", "[gpu07]:2222", Trust.UNKNOWN),
        (f"[gpu07]:2222 {words(KEY)}", "[gpu07]:2222", Trust.KNOWN),
        (f"gpu*.example,!gpu9* {words(KEY)}", "gpu07.example", Trust.KNOWN),
        (f"gpu*.example,!gpu9* {words(KEY)}", "gpu91.example", Trust.UNKNOWN),
        (f"[*.example]:22?2 {words(KEY)}", "[a.example]:2222", Trust.KNOWN),
        (f"{hashed('gpu07')} {words(KEY)}", "gpu07", Trust.KNOWN),
        (f"{hashed('gpu07')} {words(OTHER)}", "gpu07", Trust.CHANGED),
        (f"{hashed('gpu07')} {words(KEY)}", "gpu08", Trust.UNKNOWN),
        (f"gpu07 {words(KEY)}\n@revoked * {words(KEY)}", "gpu07", Trust.REVOKED),
        (f"gpu07 {words(KEY)}\n@revoked {hashed('gpu07')} {words(KEY)}", "gpu07", Trust.REVOKED),
        (f"gpu07 {words(KEY)}\n@revoked gpu08 {words(KEY)}", "gpu07", Trust.KNOWN),
        (f"@cert-authority *.example {words(KEY)}", "gpu07.example", Trust.UNKNOWN),
        (f"#gpu07 {words(KEY)}\n\ngpu07\ngpu07 ssh-ed25519 %%%\n|1|x {words(KEY)}", "gpu07", Trust.UNKNOWN),
        (f" gpu07\t{words(OTHER)}\ngpu07\t {words(KEY)}", "gpu07", Trust.KNOWN),
        (f"\t {hashed('gpu07')}\t{words(KEY)}", "gpu07", Trust.KNOWN),
        (f"gpu#7 {words(KEY)}", "gpu#7", Trust.KNOWN),
    ],
    ids=[
        "an exact name",
        "one of several names",
        "names have no case",
        "another key of this type",
        "only a key of another type counts as changed",
        "one of several keys is enough",
        "port 22's key says nothing about another port",
        "a name with its port",
        "a pattern",
        "a pattern with an exception",
        "brackets in patterns are literal",
        "a hashed name",
        "a hashed name with another key",
        "another host's hash",
        "revoked everywhere",
        "revoked by a hashed name",
        "revoked for another host",
        "an authority's key is not a host's key",
        "comments and broken lines vouch for nobody",
        "tabs and blanks around a name",
        "tabs and blanks around a hashed name",
        "a number sign within a name",
    ],
)
def test_judge(line: str, name: str, trust: Trust) -> None:
    assert parse([("known_hosts", line)]).verdict(name, KEY).trust is trust


def test_an_authority_is_told() -> None:
    known = parse([("/k", f"\n@cert-authority *.example {words(RSA)}")])
    assert [line.where for line in known.authorities_for(("gpu07.example",))] == ["/k:2"]
    assert known.authorities_for(("gpu07.else",)) == ()


@pytest.mark.parametrize("end", ["\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029", "\r"])
def test_a_comment_cannot_become_a_line_of_its_own(tmp_path: Path, end: str) -> None:
    path = tmp_path / "known_hosts"
    path.write_bytes(
        f"gpu08 {words(RSA)} a comment{end}@cert-authority * {words(KEY)}\r\ngpu07 {words(KEY)}\r\n".encode()
    )
    known = load([path])
    assert known.authorities == []
    assert known.verdict("gpu07", KEY).known[0].where == f"{path}:2"


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo], ids=["a directory", "a pipe"])
def test_what_is_no_file_is_named(tmp_path: Path, make: Callable[[Path], None]) -> None:
    path = tmp_path / "known_hosts"
    make(path)
    with pytest.raises(TransportError, match=f"{path} cannot be read"):
        load([path])
    assert load([tmp_path / "absent", Path("/dev/null")]).exact == {}


def test_fingerprint_is_ssh_keygens() -> None:
    """ssh-keygen -lf of GitHub's published ed25519 key."""
    blob = base64.b64decode("AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl")
    assert HostKey("ssh-ed25519", blob).fingerprint == "SHA256:+DiY3wvvV6TuJJhbpZisF/zLDA0zPMSvHdkr4UvCOqU"


@pytest.mark.parametrize(
    ("host", "port", "name"), [("GPU07", 22, "gpu07"), ("gpu07", 2222, "[gpu07]:2222"), ("::1", 22, "::1")]
)
def test_host_name(host: str, port: int, name: str) -> None:
    assert host_name(host, port) == name


def test_many_runs_that_accept_the_same_host_write_one_line(tmp_path: Path) -> None:
    path = tmp_path / ".ssh" / "known_hosts"
    threads = [threading.Thread(target=accept_new, args=(path, "gpu07", KEY)) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert path.read_text() == f"gpu07 {words(KEY)}\n"
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_accepting_a_host_that_another_run_just_added_with_another_key_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "known_hosts"
    accept_new(path, "gpu07", OTHER)
    assert accept_new(path, "gpu07", KEY).trust is Trust.CHANGED
    assert path.read_text() == f"gpu07 {words(OTHER)}\n"


def test_the_last_of_ten_thousand_lines_is_found() -> None:
    text = "\n".join(f"gpu{n} {words(KEY)}" for n in range(10_000))
    assert parse([("k", text)]).verdict("gpu9999", KEY).trust is Trust.KNOWN


def test_a_revoked_certificate_that_is_none_is_passed_over() -> None:
    known = parse([("k", f"@revoked * ssh-ed25519-cert-v01@openssh.com AAAA\ngpu07 {words(KEY)}")])
    assert known.verdict("gpu07", KEY).trust is Trust.KNOWN
