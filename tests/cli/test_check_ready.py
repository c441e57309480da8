"""What a check loads while it waits for its host, and that it stops once the host has answered."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpunode.cli.verbs import check_ready
from gpunode.facts import collect as collecting
from gpunode.facts.collect import collect
from gpunode.transport.base import Completed


def loaded(monkeypatch: pytest.MonkeyPatch, hurried_at: str) -> list[str]:
    """What of two things that are always needed, and of three that mostly are, is loaded."""
    done: list[str] = []
    loading = check_ready.Loading()

    def load(name: str) -> Callable[[], object]:
        def one() -> None:
            done.append(name)
            if name == hurried_at:
                loading.hurry()

        return one

    monkeypatch.setattr(check_ready, "_always", lambda: map(load, ("a", "b")))
    monkeypatch.setattr(check_ready, "_mostly", lambda: map(load, ("c", "d", "e")))
    loading.start()
    loading.join()
    return done


@pytest.mark.parametrize(("hurried_at", "all_of_it"), [("", "abcde"), ("a", "ab"), ("c", "abc"), ("e", "abcde")])
def test_what_may_not_be_needed_is_loaded_until_the_host_answers(
    hurried_at: str, all_of_it: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert loaded(monkeypatch, hurried_at) == list(all_of_it)


def test_all_that_is_named_can_be_loaded() -> None:
    for load in (*check_ready._always(), *check_ready._mostly()):
        load()


def test_the_host_has_answered_before_its_answer_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    class Answers:
        target = "gpu07"

        def run(self, script: str, *, stdin: bytes = b"", timeout_s: float) -> Completed:
            order.append("asked")
            return Completed(0, b"@gpunode-facts 1\n@end\n", b"", 0.0)

        def reconnect(self) -> None: ...

        def close(self) -> None: ...

    order: list[str] = []
    monkeypatch.setattr(collecting, "_assembled", lambda *_: order.append("read"))
    collect(Answers(), answered=lambda: order.append("answered"))
    assert order == ["asked", "answered", "read"]
