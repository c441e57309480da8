"""Which containers on the host need what gpunode added, asked before an undo takes it away. Changes nothing there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import get_args

from gpunode.apply.reasons import error_summary
from gpunode.apply.script import parse_reply, shell_line
from gpunode.errors import StepFailed
from gpunode.model.action import Run
from gpunode.model.containers import Container, Need
from gpunode.regex import regex
from gpunode.remedy import AGAIN, Remedy, RepairAction, gpunode
from gpunode.transport.base import Transport

# What an engine takes for an id or a name, a pod's namespace included; anything else was not written by one.
_WORD = regex(r"[A-Za-z0-9][A-Za-z0-9_./-]{0,399}")


def read_containers(transport: Transport, questions: Iterable[tuple[str, Run]]) -> tuple[Container, ...]:
    """The answers to `questions` (label of the engine, question), each container and pod once.

    Raises StepFailed where one cannot be answered: nobody may take a list that is missing for an empty one.
    """
    found: dict[str, Container] = {}
    for label, question in questions:
        names = {one.name for one in found.values()}
        for container in _answer(transport, label, question):
            if label or container.name not in names:  # of a pod every container is a process, and all have its name
                found.setdefault(container.id, container)
                names.add(container.name)
    return tuple(found.values())


def _answer(transport: Transport, label: str, question: Run) -> Iterator[Container]:
    script = f"set -- {shell_line(question.argv[3:])}\n{question.stdin}"
    done = transport.run(script, timeout_s=question.timeout_s)
    try:
        parse_reply(done)
    except StepFailed as error:
        error.problem = f"{transport.target}: {question.description}: {error.problem}"
        error.evidence = error.evidence or error_summary(done.stderr.decode("utf-8", "replace"))
        error.remedy = Remedy(
            RepairAction.CONFIGURE,
            "fix that, then run ",
            AGAIN,
            " again; ",
            gpunode("undo", "--allow-container-loss"),
            " does not ask for them",
        )
        raise
    for line in done.stdout.decode("utf-8", "replace").splitlines()[1:]:
        if container := _container(label, line.split("\t")):
            yield container


def _container(label: str, words: list[str]) -> Container | None:
    need = next((need for need in get_args(Need) if words[0] == need), None)
    if need is None or len(words) != 3 or not _WORD.fullmatch(words[1]):
        return None
    name = words[2] if _WORD.fullmatch(words[2]) and words[2] != words[1] else words[1][:12]  # as engines shorten it
    return Container(label, need, words[1], name)
