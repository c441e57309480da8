"""What the journal says of files: as the last setup left them, and nothing that was taken back since."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gpunode.facts.journal import parse_journal
from gpunode.facts.wire import decode, encode

PATH, OLD, A, B = "/etc/docker/daemon.json", "0" * 64, "a" * 64, "b" * 64


def file(after: str = A, run: str = "r1", path: str = PATH, step: str = "docker.default") -> dict[str, Any]:
    return {"kind": "file", "run": run, "step": step, "path": path, "after": after, "before": OLD}


def undo(run: str, runs: object = ("r1",)) -> dict[str, Any]:
    return {"kind": "run-begin", "run": run, "before": {"undo": {"runs": runs, "packages": False}}}


def end(run: str, status: str = "done") -> dict[str, Any]:
    return {"kind": "run-end", "run": run, "status": status}


@pytest.mark.parametrize(
    ("entries", "left"),
    [
        ([file()], A),
        ([file(), file(B, "r2")], B),
        ([file("absent")], None),
        ([file(), file("absent", "r2")], None),
        ([file(), {"kind": "restore", "run": "r1", "step": "docker.default", "path": PATH}], None),
        ([file(), undo("u1"), end("u1")], None),
        ([file(), undo("u1"), file(OLD, "u1")], None),
        ([file(), undo("u1"), end("u1", "failed")], A),
        ([file(), file(B, "r2"), undo("u1", ["r2"]), end("u1")], None),
        ([file(run="r3"), undo("u1"), end("u1")], A),
        ([file(), {"kind": "command", "run": "r1", "argv": ["sh", "-s", "--", "docker", PATH]}], A),
        ([file(), {"kind": "command", "run": "r1", "argv": ["x"], "files": [PATH]}], None),
        ([{"kind": "step-begin", "run": "r1", "step": "docker.default"}, file()], None),
        ([file("x" * 64)], None),
        ([file(A * 2)], None),
        ([file(), undo("u1", 7), end("u1")], A),
        ([{"kind": "file"}, {"kind": "command", "argv": 3, "files": 3}, undo("u1", 7), end("u1"), file()], A),
    ],
    ids=["written", "written again", "removed", "removed later", "rolled back", "undone", "an undo's own write",
         "an undo that failed", "an undo of a later run", "an undo of another run", "a command was given it",
         "a command that says so", "a step that is open", "no hash", "a hash too long",
         "an undo of no run", "odd entries"],
)  # fmt: skip
def test_a_file_counts_as_gpunode_left_it(entries: list[dict[str, Any]], left: str | None) -> None:
    found = parse_journal("\n".join(map(json.dumps, entries)), {}).files.get(PATH)
    assert (found.sha256 if found else None) == left
    if found:
        assert (found.before, found.step) == (OLD, "docker.default")


@pytest.mark.parametrize(
    ("head", "at"),
    [("mode=644 mtime=1795000000", 1_795_000_000), ("mode=644", None), ("mtime=0", 0)],
    ids=["with its time", "an older recording", "the epoch"],
)
def test_a_file_has_the_time_it_was_written_at(head: str, at: int | None) -> None:
    stream = f"@gpunode-facts 1\n@ file:/etc/a bytes=2 {head} sha256={A}\n|1\n@end\n".encode()
    assert decode(stream).files["/etc/a"].written_at == at
    assert decode(encode(decode(stream))).files["/etc/a"].written_at == at
