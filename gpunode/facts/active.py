"""One round trip that does something on a host: the active tests that a person asked for, and what was seen.

Nothing here runs without being asked for, and nothing of it is part of a recording.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from gpunode import resources
from gpunode.errors import HostLocked, StepFailed
from gpunode.facts.active_gpu import parse_cuda, parse_dcgm
from gpunode.facts.active_pod import parse_pod
from gpunode.facts.wire import Section, Sections, decode
from gpunode.model.active import ActiveFacts, ActiveTests, ContainerTrial, ContainerView, Trial
from gpunode.model.pod_trial import PodTrial
from gpunode.regex import regex
from gpunode.remedy import Remedy, RepairAction
from gpunode.transport.base import Transport

SCRIPTS = (
    "daemon/query",
    "trust",
    "probe/wire",
    *(f"active/{name}" for name in ("room", "root", "containers", "cuda", "dcgm", "run")),
)
POD_SCRIPTS = ("daemon/query", "trust", "probe/wire", "active/room", "active/pod")
POD_S = 200.0  # to make, read and delete a pod, and those that earlier tests left
# The sums of the script's own limits: to make and sweep the room; for each way to load, start, look twice and remove.
ROOM_S, TRIAL_S, RELOAD_S, CUDA_S = 180.0, 540.0, 90.0, 190.0
# Of dcgmi diag, by its level: NVIDIA names seconds, 2 and 15 minutes, and 1 to 2 hours (DCGM user guide, Diagnostics).
DCGM_S = {1: 300, 2: 900, 3: 3600, 4: 10800}
MOST_LINES = 64  # of nvidia-smi -L, and of device nodes, that are kept; the largest node has 16 GPUs
_CLOSED = regex(r"closed (/dev/nvidia\w+) (.*)")
_OPEN = regex(r"open (/dev/nvidia\w+)")
_ID = regex("[0-9a-f]{64}")
_DAEMON = regex(r"^(?:docker: |Error: |ctr: )?(?:Error response from daemon: )?")


def observe(transport: Transport, asked: ActiveTests, trials: Sequence[Trial]) -> ActiveFacts:
    """Run the tests that were `asked` for, with these `trials`, and return what came of them.

    Raises HostLocked where another gpunode tests this host, StepFailed where there is no place to work in, and
    TransportError as Transport.run does.
    """
    able = [trial for trial in trials if asked.containers and not trial.unfit and not trial.fault]
    limit_s = ROOM_S + TRIAL_S * len(able) + RELOAD_S * asked.survive_reload + CUDA_S * asked.cuda
    limit_s += DCGM_S.get(asked.dcgm or 0, 0)
    done = transport.run(script(asked, able), timeout_s=limit_s)
    sections = decode(done.stdout)
    _refuse(sections.commands.get("room", Section(rc=None)), transport.target)
    return parse(sections, asked, trials)


def start_pod(
    transport: Transport, name: str, manifest: str, node: str, *, kubeconfig: str = "-", limit_s: int = 120
) -> PodTrial:
    """Make a pod on the host's `node`, wait until it has ended, and delete it. `kubeconfig`: a file of the host.

    Raises HostLocked, StepFailed and TransportError as `observe` does.
    """
    words = shlex.join(("gpunode_pod", name, str(limit_s), kubeconfig, manifest, node))
    text = "\n".join((*map(resources.script, POD_SCRIPTS), f"{words} </dev/null\n"))
    sections = decode(transport.run(text, timeout_s=ROOM_S + limit_s + POD_S).stdout)
    _refuse(sections.commands.get("room", Section(rc=None)), transport.target)
    return parse_pod(sections, name)


def script(asked: ActiveTests, able: Sequence[Trial]) -> str:
    """The text for Transport.run: functions, and one call on the last line, so a truncated upload runs nothing."""
    lines = "".join(f"  {_words(number, trial)}\n" for number, trial in enumerate(able))
    trials = f"trials() {{\n{lines}  :\n}}\n"
    wanted = (asked.containers and bool(able), asked.survive_reload, asked.cuda)
    level = asked.dcgm or 0
    numbers = " ".join(str(int(number)) for number in (*wanted, level, DCGM_S.get(level, 0)))
    call = f"gpunode_active {numbers} </dev/null\n"
    return "\n".join((*map(resources.script, SCRIPTS), trials, call))


def _words(number: int, trial: Trial) -> str:
    words = (trial.kind, trial.program, trial.socket or "-", trial.address or "-", *trial.options)
    return shlex.join(("trial", str(number), *words))


def _refuse(room: Section, target: str) -> None:
    if room.rc == 0:
        return
    why = room.unread or "it did not answer"
    if why.startswith("locked "):
        raise HostLocked(
            f"{target}: {why.removeprefix('locked ')}",
            evidence="/run/gpunode-test is there",
            remedy=Remedy(RepairAction.WAIT, "let it end, then check again"),
        )
    raise StepFailed(
        f"{target}: no active test was run: {why}",
        evidence="they work in /run/gpunode-test and /var/lib/gpunode-test",
        remedy=Remedy(RepairAction.CONFIGURE, "make room there, for root alone to write in, and check again"),
    )


def parse(sections: Sections, asked: ActiveTests, trials: Sequence[Trial]) -> ActiveFacts:
    """Pure: the script's answer as values."""
    seen, number = [], 0
    for trial in trials if asked.containers else ():
        if trial.unfit or trial.fault:
            seen.append(ContainerTrial(trial, refused=trial.fault, unknown=trial.unfit))
            continue
        seen.append(_trial(sections, trial, number))
        number += 1
    return ActiveFacts(
        asked,
        tuple(seen),
        _not_done(sections, "reload") if asked.survive_reload else "",
        tuple(sections.text("left").splitlines()[:MOST_LINES]),
        parse_cuda(sections.commands.get("cuda")) if asked.cuda else None,
        parse_dcgm(sections, asked.dcgm) if asked.dcgm is not None else None,
    )


def _not_done(sections: Sections, name: str) -> str:
    """Why what `name` is about was not done; "": it was."""
    section = sections.commands.get(name)
    if section is None:
        return "it was not reached"
    if section.rc is None:
        return section.unread or "no reason given"
    return "" if section.rc == 0 else last_words(section.text) or f"exit code {section.rc}"


def _trial(sections: Sections, trial: Trial, number: int) -> ContainerTrial:
    root, start = sections.commands.get("root"), sections.commands.get(f"start:{number}")
    if root is not None and root.rc is None:
        return ContainerTrial(trial, unknown=f"no image could be made of this host's files: {root.unread}")
    if start is None or start.rc is None:
        return ContainerTrial(trial, unknown=(start.unread if start else None) or "it was not reached")
    if start.rc != 0:
        return ContainerTrial(trial, refused=last_words(start.text) or f"exit code {start.rc}")
    first, why = _view(sections.commands.get(f"first:{number}"))
    again, why_again = _view(sections.commands.get(f"again:{number}"))
    return ContainerTrial(trial, "", first, again, why or why_again)


def _view(section: Section | None) -> tuple[ContainerView | None, str]:
    """(what was seen, why nothing was). A missing section was not asked for."""
    if section is None:
        return None, ""
    if section.rc is None:
        return None, section.unread or "no reason given"
    lines = section.text.splitlines()
    ended = [line for line in lines if re.fullmatch("smi (none|[0-9]{1,3})", line)]
    if section.rc != 0 or not ended:
        return None, f"nothing could be run in the container: {last_words(section.text) or f'exit code {section.rc}'}"
    closed = [(match[1], match[2]) for line in lines if (match := _CLOSED.fullmatch(line))]
    nodes = [match[1] for line in lines if (match := _OPEN.fullmatch(line))] + [node for node, _ in closed]
    code = ended[-1].removeprefix("smi ")
    smi = [line for line in lines if line not in ended and not line.startswith(("open ", "closed "))]
    return ContainerView(
        tuple(sorted(nodes)[:MOST_LINES]),
        tuple(f"{node}: {why}" for node, why in closed[:MOST_LINES]),
        None if code == "none" else int(code),
        tuple(smi[:MOST_LINES]),
    ), ""


def last_words(text: str) -> str:
    """What an engine's command line says of its failure, without the ids that it prints before and the help after."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not _ID.fullmatch(line.strip())]
    errors = [line for line in lines if re.search(r"\berror\b|\bfailed\b|: ", line, re.IGNORECASE)]
    return _DAEMON.sub("", (errors or lines or [""])[0])[:400]
