"""Going on after this machine's own reboot: a oneshot unit that runs gpunode once and removes itself."""

from __future__ import annotations

from collections.abc import Sequence

from gpunode import resources
from gpunode.model.action import PutFile, Run
from gpunode.model.facts import HostFacts, ServiceFacts
from gpunode.model.plan import Step
from gpunode.regex import regex

UNIT = "gpunode-resume.service"
PATH = f"/etc/systemd/system/{UNIT}"
WANTS = f"/etc/systemd/system/multi-user.target.wants/{UNIT}"
TEMPLATE = "systemd/gpunode-resume.service.j2"
SPEC_FILE = "resume.yaml"  # what a unit that waits is to set up: the last part of its path
_LEFTOVERS = "ExecStopPost=/bin/rm -f "
_QUOTED = regex(r'"((?:[^"\\]|\\.)*)"')


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


def leftover_step(host: HostFacts) -> Step | None:
    """What removes the unit of an earlier setup that still waits for the next boot; None where none does.

    It would set the host up by the spec of that time, whatever was wanted since. The one that runs now is disabled.
    """
    now = host.services.get(UNIT, ServiceFacts())
    if now.enabled != "enabled" or now.active == "activating":
        return None
    files = (PATH, *_specs(host.file(PATH).text or ""))
    return Step(
        "resume.remove",
        f"remove {', '.join(files)}",
        f"an earlier setup left {UNIT}, which would set this host up by its own spec at the next boot",
        (
            Run(("systemctl", "disable", UNIT), timeout_s=60),
            Run(("/bin/rm", "-f", *files), timeout_s=30),
            Run(("systemctl", "daemon-reload")),
        ),
    )


def _specs(unit: str) -> tuple[str, ...]:
    """The files with what the unit is to set up, as its own last line removes them."""
    line = next((line for line in unit.splitlines() if line.startswith(_LEFTOVERS)), "")
    return tuple(word for word in map(_unquoted, _QUOTED.findall(line)) if word.endswith(f"/{SPEC_FILE}"))


def exec_line(argv: Sequence[str]) -> str:
    """An ExecStart= line: every word quoted, with % and $ doubled (systemd.service(5), "Command lines")."""
    return " ".join(_quoted(word) for word in argv)


_ESCAPED = (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("%", "%%"), ("$", "$$"))
_ESCAPE = regex(r'\\\\|\\"|\\n|%%|\$\$')


def _quoted(word: str) -> str:
    for char, escaped in _ESCAPED:
        word = word.replace(char, escaped)
    return f'"{word}"'


def _unquoted(word: str) -> str:
    plain = {escaped: char for char, escaped in _ESCAPED}
    return _ESCAPE.sub(lambda found: plain[found[0]], word)
