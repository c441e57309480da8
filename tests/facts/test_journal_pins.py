"""Whose a pin is: gpunode's, where it was not there before the first setup and a command of one names it."""

from __future__ import annotations

import json

import pytest

from gpunode.facts.journal import parse_journal


def entries(before: list[str] | None, argv: list[str]) -> str:
    begin = {"kind": "run-begin", "run": "r1", "before": {} if before is None else {"held": before}}
    command = {"kind": "command", "run": "r1", "step": "toolkit.hold", "argv": argv}
    return "\n".join(map(json.dumps, (begin, command)))


@pytest.mark.parametrize(
    ("before", "argv", "own"),
    [
        ([], ["apt-mark", "hold", "nvidia-open"], {"nvidia-open"}),
        ([], ["sh", "-s", "--", "nvidia-open", "*nvidia*"], {"nvidia-open", "libnvidia-ml1"}),
        (["nvidia-open"], ["apt-mark", "hold", "nvidia-open"], set()),
        ([], ["apt-mark", "hold", "other"], set()),
        ([], ["sh", "-s", "--", "*"], set()),
        (None, ["apt-mark", "hold", "nvidia-open"], set()),
    ],
    ids=["by name", "by pattern", "before it", "another", "everything is nobody's", "what was before is not known"],
)
def test_a_pin_is_gpunodes_own(before: list[str] | None, argv: list[str], own: set[str]) -> None:
    held = {"nvidia-open", "libnvidia-ml1"}
    assert parse_journal(entries(before, argv), {}, held).pinned == own
