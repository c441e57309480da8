"""More logins at once than an sshd takes: all get in."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress

import pytest

from gpunode.errors import TransportError
from gpunode.transport.crowd import Crowd, crowd_at, pause_s
from gpunode.transport.ssh import Ssh
from gpunode.transport.ssh_config import SshTarget
from tests.transport.conftest import options, target
from tests.transport.sshd import Sshd

Start = Callable[..., Sshd]


def test_a_crowd_gets_in_though_sshd_drops_most_of_it(sshd: Start) -> None:
    server = sshd(extra="MaxStartups 2:70:4")
    flags, answers = options(server), []

    def log_in() -> None:
        ssh = Ssh(target(server), flags)
        try:
            answers.append(ssh.run("echo in", timeout_s=120).stdout)
        except TransportError as error:
            answers.append(f"{error.problem}: {error.evidence}".encode())
        finally:
            ssh.close()

    threads = [threading.Thread(target=log_in) for _ in range(30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [b"in\n"] * 30
    assert "MaxStartups" in (server.directory / "log").read_text()  # it did drop some


def test_a_crowd_is_one_for_all_who_are_there_and_gone_with_the_last() -> None:
    first, second = crowd_at("jump:22"), crowd_at("jump:22")
    assert first is second
    first.dropped(0)
    del first
    assert crowd_at("jump:22")._drops == 1
    del second
    assert crowd_at("jump:22")._drops == 0


def test_fewer_go_in_after_each_drop_and_many_drops_at_once_are_one() -> None:
    crowd = Crowd()
    inside, most, lock = 0, [], threading.Lock()

    def visit() -> None:
        nonlocal inside
        with crowd.place():
            with lock:
                inside += 1
                most.append(inside)
            threading.Event().wait(0.01)
            with lock:
                inside -= 1

    def together(count: int) -> int:
        most.clear()
        threads = [threading.Thread(target=visit) for _ in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return max(most)

    with crowd.place(0) as drops:
        crowd.dropped(drops)
        crowd.dropped(drops)
    assert together(40) <= 8
    with crowd.place(0) as drops:
        crowd.dropped(drops)
    assert together(40) <= 4


def test_who_waited_long_enough_goes_in_all_the_same() -> None:
    crowd = Crowd()
    for _ in range(9):
        with crowd.place(0) as drops:
            crowd.dropped(drops)
    with crowd.place(0), crowd.place(0.01):
        pass


def test_pauses_grow_and_are_never_the_same() -> None:
    assert len({pause_s(3) for _ in range(20)}) > 10
    assert all(0.25 <= pause_s(0) <= 0.75 and 4 <= pause_s(50) <= 12 for _ in range(100))


@pytest.mark.parametrize(
    ("words", "said"),
    [(b"HTTP/1.1 400 Bad Request\r\n", "HTTP/1.1 400"), (b"Not allowed at this time\r\n", "PerSourcePenalties")],
)
def test_who_says_something_else_is_asked_once(sshd: Start, words: bytes, said: str) -> None:
    dialled = []
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()

        def answer() -> None:
            with suppress(OSError):
                while True:
                    link = listener.accept()[0]
                    dialled.append(link)
                    link.sendall(words)
                    link.shutdown(socket.SHUT_WR)

        threading.Thread(target=answer, daemon=True).start()
        server = sshd()
        ssh = Ssh(SshTarget("127.0.0.1", "root", listener.getsockname()[1]), options(server, ""))
        with pytest.raises(TransportError) as caught:
            ssh.run("true", timeout_s=10)
    for link in dialled:
        link.close()
    assert said in caught.value.evidence + caught.value.remedy.text
    assert len(dialled) == 1
