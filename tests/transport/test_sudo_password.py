"""One password of sudo for many hosts: who may try it, and when. Against real sshds, with stand-ins for sudo."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpunode.errors import TransportError
from gpunode.transport.base import PasswordRefused
from gpunode.transport.secret import Secret
from gpunode.transport.ssh import Ssh
from gpunode.transport.sudo_password import SudoPassword
from tests.transport.conftest import options, target
from tests.transport.sshd import Sshd
from tests.transport.sudo import DIALECTS, PASSWORD, stand_in

HOSTS = 6


@pytest.fixture
def fleet(sshd: Callable[..., Sshd], tmp_path: Path) -> Iterator[Callable[..., list[Ssh]]]:
    """Hosts over one sshd each, with a sudo of their own in tmp_path/N, that share one password."""
    opened: list[Ssh] = []

    def make(word: str, dialect: str = "sudo", hosts: int = HOSTS, extra: str = "", slow: bool = False) -> list[Ssh]:
        password = SudoPassword(Secret(word))
        for number in range(hosts):
            directory = tmp_path / str(number)
            directory.mkdir()
            if slow:
                (directory / "slow").touch()
            programs = stand_in(directory, dialect)
            server = sshd(force=f'PATH={programs}; exec sh -c "$SSH_ORIGINAL_COMMAND"', extra=extra)
            opened.append(Ssh(target(server), options(server, become="always", become_password=password)))
        return opened

    yield make
    for ssh in opened:
        ssh.close()


def at_once(hosts: list[Ssh]) -> list[TransportError | bytes]:
    """What each answers to a script, or why not."""
    answers: dict[int, TransportError | bytes] = {}

    def one(number: int) -> None:
        try:
            answers[number] = hosts[number].run("echo in", timeout_s=120).stdout
        except TransportError as error:
            answers[number] = error

    threads = [threading.Thread(target=one, args=(number,)) for number in range(len(hosts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [answers[number] for number in range(len(hosts))]


def tries(directory: Path) -> int:
    return sum(path.read_text().count("x") for path in directory.glob("*/tries"))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_mistyped_password_is_tried_at_two_hosts_and_no_more(
    fleet: Callable[..., list[Ssh]], tmp_path: Path, dialect: str
) -> None:
    answers = at_once(fleet("open barley", dialect, slow=True))  # all others ask while one is tried
    assert tries(tmp_path) == 2
    errors = [answer for answer in answers if isinstance(answer, PasswordRefused)]
    assert sum("sudo refused the password" in error.problem for error in errors) == 2
    untried = [error for error in errors if "sudo's password was not tried" in error.problem]
    assert len(untried) == HOSTS - 2
    assert {error.evidence for error in untried} == {"2 hosts in a row refused it"}
    assert all("--become-pass-file" in error.remedy.text for error in untried)
    assert not any("barley" in f"{error.problem}{error.evidence}{error.remedy.text}" for error in errors)


def test_who_comes_after_two_refusals_is_asked_nothing(fleet: Callable[..., list[Ssh]], tmp_path: Path) -> None:
    """Not even a sudo that could not be killed is at its prompt when its input ends."""
    hosts = fleet("open barley", "sudo-rs", hosts=4, extra="MaxSessions 1")
    at_once(hosts[:1])
    at_once(hosts[1:2])
    before = tries(tmp_path)
    (tmp_path / "3" / "nopasswd").touch()
    untried, free = at_once(hosts[2:])
    assert isinstance(untried, PasswordRefused)
    assert "was not tried" in untried.problem
    assert free == b"in\n"
    assert tries(tmp_path) == before
    assert "-S" not in (tmp_path / "2" / "argv").read_text()


def test_a_right_password_serves_all_hosts_and_each_script(fleet: Callable[..., list[Ssh]], tmp_path: Path) -> None:
    hosts = fleet(PASSWORD)
    for _ in range(2):
        assert at_once(hosts) == [b"in\n"] * HOSTS
    assert tries(tmp_path) == 0


def test_a_host_that_took_it_goes_on_when_others_refuse_it(fleet: Callable[..., list[Ssh]], tmp_path: Path) -> None:
    hosts = fleet(PASSWORD, hosts=4)
    assert at_once(hosts[:1]) == [b"in\n"]
    for number in (1, 2):
        path = tmp_path / str(number) / "bin" / "sudo"
        path.write_text(path.read_text().replace(PASSWORD, "another"))
    refusals = at_once(hosts[1:3])
    assert all(isinstance(error, PasswordRefused) for error in refusals)
    (late,) = at_once(hosts[3:])
    assert isinstance(late, PasswordRefused)
    assert at_once(hosts[:1]) == [b"in\n"]


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_host_that_says_nothing_holds_the_others_for_half_a_minute() -> None:
    clock = Clock()
    password = SudoPassword(Secret("word"), clock)
    silent, other = password.at_host(), password.at_host()
    assert silent.take() == b"word\n"
    clock.now = 29
    silent.silent()
    assert other.take() is None
    assert not other.withheld
    clock.now = 30
    silent.silent()
    assert other.take() == b"word\n"
    silent.answered(taken=False)  # late, and counted all the same
    other.answered(taken=False)
    assert password.at_host().not_tried == "2 hosts in a row refused it"


def test_a_host_that_breaks_off_holds_nobody_and_counts_as_nothing() -> None:
    password = SudoPassword(Secret("word"))
    for _ in range(5):
        broken = password.at_host()
        assert broken.take() == b"word\n"
        broken.answered(taken=None)
        broken.answered(taken=None)  # once is enough
    assert password.at_host().take() == b"word\n"
    assert password.at_host().take() is None


def test_a_turn_that_does_not_come_is_given_up_before_sudo_does() -> None:
    clock = Clock()
    password = SudoPassword(Secret("word"), clock)
    first, waiting = password.at_host(), password.at_host()
    first.take()
    assert (waiting.take(), waiting.withheld) == (None, False)
    clock.now = 240
    assert (waiting.take(), waiting.withheld) == (None, True)
    assert "within 240 s" in waiting.not_tried
