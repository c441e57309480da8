"""Going on after this machine's own reboot: a oneshot unit that runs gpunode once and removes itself."""

from __future__ import annotations

from collections.abc import Sequence

from gpunode import resources
from gpunode.model.action import PutFile, Run
from gpunode.model.plan import Step

UNIT = "gpunode-resume.service"
PATH = f"/etc/systemd/system/{UNIT}"
WANTS = f"/etc/systemd/system/multi-user.target.wants/{UNIT}"
TEMPLATE = "systemd/gpunode-resume.service.j2"


def resume_step(argv: Sequence[str], files: Sequence[str] = ()) -> Step:
    """The step that leaves the unit behind; `argv` is what it runs, `files` are removed with the unit."""
    text = resources.render(TEMPLATE, command=exec_line(argv), leftovers=exec_line((PATH, *files)), wants=WANTS)
    return Step(
        "reboot.resume",
        f"leave {UNIT}, which goes on after the reboot and removes itself",
        "the reboot ends this gpunode",
        actions=(
            PutFile(PATH, text, any_before=True),
            Run(("systemctl", "daemon-reload")),
            Run(("systemctl", "enable", UNIT)),
        ),
        undo=(Run(("systemctl", "daemon-reload")),),
    )


def exec_line(argv: Sequence[str]) -> str:
    """An ExecStart= line: every word quoted, with % and $ doubled (systemd.service(5), "Command lines")."""
    return " ".join(_quoted(word) for word in argv)


def _quoted(word: str) -> str:
    for char, escaped in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("%", "%%"), ("$", "$$")):
        word = word.replace(char, escaped)
    return f'"{word}"'
