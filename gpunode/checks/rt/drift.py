"""Files that gpunode wrote and others have written since: what it did there is lost."""

from __future__ import annotations

import re
from datetime import datetime, timezone

from gpunode.advice import and_more, named
from gpunode.checks import needs
from gpunode.checks.registry import Context, check
from gpunode.checks.rt.files import default_in_file
from gpunode.checks.words import time_of_run
from gpunode.model.entities import place, unit
from gpunode.model.facts import HostFacts, RuntimeFacts
from gpunode.model.files import FileFacts, WrittenFile
from gpunode.model.plan import engine_step
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.regex import regex
from gpunode.remedy import Remedy, RepairAction, setup

SETUP = setup("--only", "runtime")
OPERATOR = "/usr/local/nvidia/toolkit"
# What tools that write whole files say at their beginning: Ansible, kubespray, nodeadm, k0s, cloud-init.
GENERATED = regex(
    r"(?:managed|generated|written|created|maintained) by|ansible.managed|do not edit|_managed=true", re.IGNORECASE
)
HEAD = 10  # lines in which such a word stands


@check(
    "rt.config-drift",
    Severity.WARNING,
    title="what setup wrote into files is still there",
    reads="the hashes in /var/lib/gpunode/journal.jsonl against the files",
    remedy=Remedy(RepairAction.CONFIGURE, SETUP),
    needs=(needs.gpu, needs.read("journal")),
)
def config_drift(host: HostFacts, context: Context) -> CheckOutcome:
    """Somebody has rewritten or removed a file that setup wrote, and what setup did there is lost.

    An engine's file belongs to its admin too: a change that leaves the runtime and the default in it is no drift.
    """
    known = {path: w for path, w in host.journal.files.items() if path in host.files and _seen(host.file(path))}
    if not known:
        return NotApplicable("gpunode's journal names no file that was read")
    lost = [path for path, written in known.items() if _lost(host, context, host.file(path), written)]
    if not lost:
        return None
    # An engine's comes first: containers start without a GPU.
    path = min(lost, key=lambda one: (_engine(host, known[one]) is None, one))
    more = f", {and_more(len(lost) - 1)}" if len(lost) > 1 else ""
    return _drifted(host, host.file(path), known[path], more)


def _seen(file: FileFacts) -> bool:
    """A recording has the hash of its masked text, where there was a secret in it."""
    from gpunode.masking.names import MASK

    return file.unread is None and (file.text is None or (file.sha256 is not None and MASK not in file.text))


def _engine(host: HostFacts, written: WrittenFile) -> RuntimeFacts | None:
    return next((one for one in host.runtimes if engine_step(one.label) == written.step), None)


def _lost(host: HostFacts, context: Context, file: FileFacts, written: WrittenFile) -> bool:
    if file.text is not None and file.sha256 == written.sha256:
        return False
    engine = _engine(host, written)
    return engine is None or not _configured(host, engine, context.handler)


def _configured(host: HostFacts, engine: RuntimeFacts, handler: str) -> bool:
    """The runtime is in the engine's files, and is the default there where setup made it the default."""
    from gpunode.engines.registry import ENGINES

    kind = ENGINES.get(engine.name)
    origins = kind.origins(host, engine) if kind else ()
    if not any(one.setting == f"handler {handler}" and one.source != "built in" for one in origins):
        return False
    default = default_in_file(host, engine)
    return engine.label not in host.journal.defaults or (default is not None and default.value == handler)


def _drifted(host: HostFacts, file: FileFacts, written: WrittenFile, more: str) -> Finding:
    engine, gone = _engine(host, written), file.text is None
    did = "removed" if gone else "put back as it was before" if file.sha256 == written.before else "rewritten"
    step = f"step {written.step} of {time_of_run(written.run)}"
    evidence = [f"{file.path} is absent" if gone else f"sha256 {(file.sha256 or '')[:12]}… since {_since(file)}"]
    writer = _writer(file)
    evidence += [f"gpunode left {written.sha256[:12]}…", *writer]
    remedy = Remedy(RepairAction.CONFIGURE, SETUP, " writes it again; whoever rewrote it will do so again unless told")
    by_hand = Remedy(RepairAction.NONE, f"find out who changed {named(file.path)}: setup leaves it as it is now")
    return Finding(
        f"{file.path} was {did} after gpunode wrote it{more}: what {step} did is lost",
        evidence="; ".join(evidence),
        remedy=remedy if engine else by_hand,
        steps=(written.step,) if engine else (),
        otherwise=by_hand,
        decision=f"{writer[0]}, and would write it again" if writer else "",
        # Its next start at the latest gives containers no GPU.
        severity=Severity.ERROR if engine else None,
        entities=(place(file.path), *unit(engine.unit if engine else "")),
    )


def _since(file: FileFacts) -> str:
    if file.written_at is None:
        return "an unknown time"
    try:
        return f"{datetime.fromtimestamp(file.written_at, timezone.utc):%Y-%m-%d %H:%M} UTC"
    except (ValueError, OverflowError, OSError):  # a clock that was set to nonsense
        return "an unknown time"


def _writer(file: FileFacts) -> list[str]:
    """Who rewrote it, where the file says so."""
    lines = (file.text or "").splitlines()
    if OPERATOR in (file.text or ""):
        return [f"it names {OPERATOR}: the GPU Operator's toolkit wrote it"]
    head = ((n, line.strip()) for n, line in enumerate(lines[:HEAD], 1))
    return next(([f"line {n} says {line[:80]!r}"] for n, line in head if GENERATED.search(line)), [])
