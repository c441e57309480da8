"""Becoming root here, by stand-ins for sudo and doas (tests/transport/sudo.py); the lab has the real ones."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from gpunode.errors import TransportError
from gpunode.transport.local import Local
from gpunode.transport.secret import Secret
from tests.transport.sudo import DIALECTS, PASSWORD, doas, neither, stand_in

Here = Callable[[Path, str | None], Local]


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Here:
    """This machine, where programs are found in the given directory, and with this password."""

    def make(programs: Path, password: str | None) -> Local:
        monkeypatch.setenv("PATH", str(programs))
        return Local(password=None if password is None else Secret(password), become="always")

    return make


def refused(local: Local) -> TransportError:
    with pytest.raises(TransportError) as caught:
        local.run("echo begun", timeout_s=120)
    return caught.value


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_password_serves_every_script_and_is_shown_to_nobody(here: Here, tmp_path: Path, dialect: str) -> None:
    """sudo keeps no memory of it from one session to the next, and every script has one of its own."""
    local = here(stand_in(tmp_path, dialect), PASSWORD)
    for payload in (b"one\n", bytes(range(256)) * 1024):
        done = local.run("echo root; cat", stdin=payload, timeout_s=120)
        assert (done.code, done.stdout, done.stderr) == (0, b"root\n" + payload, b"")
    assert (tmp_path / "argv").read_text().count("-S -p") == 2
    assert "sesame" not in (tmp_path / "argv").read_text() + (tmp_path / "environ").read_text()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_wrong_password_is_tried_once(here: Here, tmp_path: Path, dialect: str) -> None:
    error = refused(here(stand_in(tmp_path, dialect), "open barley"))
    assert "sudo refused the password" in error.problem
    assert (tmp_path / "tries").read_text() == "x\n"
    assert "barley" not in error.problem + error.evidence + error.remedy.text


@pytest.mark.parametrize("dialect", DIALECTS)
def test_whose_password_sudo_wants_is_said_where_it_is_not_the_users(here: Here, tmp_path: Path, dialect: str) -> None:
    error = refused(here(stand_in(tmp_path, dialect, owner="root"), "open barley"))
    assert "sudo refused the password, for it wants root's" in error.problem
    assert "rootpw" in error.problem


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_sudo_that_asks_nothing_is_sent_no_password(here: Here, tmp_path: Path, dialect: str) -> None:
    (tmp_path / "nopasswd").touch()
    done = here(stand_in(tmp_path, dialect), PASSWORD).run("cat", stdin=b"data", timeout_s=120)
    assert done.stdout == b"data"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_without_a_password_a_sudo_that_wants_one_is_an_error_where_root_is_demanded(
    here: Here, tmp_path: Path, dialect: str
) -> None:
    assert "sudo needs a password" in refused(here(stand_in(tmp_path, dialect), None)).problem


def test_doas_makes_root_where_there_is_no_sudo(here: Here, tmp_path: Path) -> None:
    (tmp_path / "nopass").touch()
    programs = doas(tmp_path)
    for password in (None, PASSWORD):
        assert here(programs, password).run("cat", stdin=b"data", timeout_s=120).stdout == b"data"
    assert (tmp_path / "argv").read_text().count("-n sh -c") == 2


def test_a_doas_that_wants_a_password_is_refused(here: Here, tmp_path: Path) -> None:
    error = refused(here(doas(tmp_path), PASSWORD))
    assert "doas wants a password, and takes it only at a terminal" in error.problem
    assert "permit nopass USER" in error.remedy.text


def test_a_host_with_neither(here: Here, tmp_path: Path) -> None:
    assert "has no sudo and no doas" in refused(here(neither(tmp_path), PASSWORD)).problem


def test_where_root_is_demanded_the_refusal_says_so(here: Here, tmp_path: Path) -> None:
    error = refused(here(neither(tmp_path), None))
    assert error.problem == "localhost: root is needed here: the host has no sudo and no doas that this user can run"


@pytest.mark.parametrize(
    ("mode", "remedy"), [(0o644, "the mode of sh"), (0o755, "")], ids=["may not be executed", "is no program"]
)
def test_an_sh_that_cannot_be_started_is_not_answered_by_free_memory(
    here: Here, tmp_path: Path, mode: int, remedy: str
) -> None:
    (tmp_path / "sh").write_bytes(b"\0")
    (tmp_path / "sh").chmod(mode)
    error = refused(here(tmp_path, None))
    assert error.problem == "localhost: cannot start sh"
    assert "let this user execute it" in error.remedy.text
    assert remedy in error.remedy.text


MISLEADING = {
    "QUOTING_STYLE": "c",
    "TIME_STYLE": "+",
    "BLOCK_SIZE": "1",
    "DF_BLOCK_SIZE": "human-readable",
    "POSIXLY_CORRECT": "1",
    "GREP_OPTIONS": "-v",
    "TAR_OPTIONS": "--no-such-option",
    "CDPATH": "/",
    "PS_FORMAT": "pid",
    "LC_ALL": "tr_TR.UTF-8",
    "DOCKER_HOST": "tcp://192.0.2.1:2375",
    "TMPDIR": "/no/such",
}


@pytest.mark.parametrize("name", MISLEADING)
def test_a_variable_of_etc_environment_does_not_change_what_tools_print(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    (tmp_path / "a file").write_text("line\n")
    os.utime(tmp_path / "a file", (0, 0))
    script = f"""cd '{tmp_path}' || exit
        ls -lns; ls -lnd "$PWD/a file"; du -s /proc/self/status; grep -c line 'a file'; tar -cf /dev/null 'a file'
        cd etc 2>/dev/null; pwd; ps -p $$ | head -n 1; ls /no/such 2>&1; printenv {name}"""
    plain = Local(become="never").run(script, timeout_s=120).stdout
    monkeypatch.setenv(name, MISLEADING[name])
    assert Local(become="never").run(script, timeout_s=120).stdout == plain
