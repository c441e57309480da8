"""Who else may rule the host: what stands open to every user of it."""

from __future__ import annotations

from gpunode.advice import listing, typed
from gpunode.checks import needs
from gpunode.checks.registry import Context, check
from gpunode.model.entities import place
from gpunode.model.facts import HostFacts
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.remedy import Remedy, RepairAction

EVERYBODY = 0o002  # may write, which a socket calls connecting


@check(
    "sec.docker-socket",
    Severity.WARNING,
    title="no engine's socket is open to every user",
    reads="the mode of docker's, containerd's and CRI-O's sockets",
    remedy=Remedy(RepairAction.CONFIGURE, "chmod o-w the socket; SocketMode=0660 in its systemd socket keeps it so"),
    needs=(needs.gpu, needs.engine),
)
def docker_socket(host: HostFacts, context: Context) -> CheckOutcome:
    """Every user of this host may start containers as root: the engine's socket is open to all.

    GPU work goes on, so it is a warning. A rootless engine's socket is its user's.
    """
    known = [engine for engine in host.runtimes if engine.socket_mode is not None and not engine.user]
    if not known:
        return NotApplicable("the mode of no engine's socket was read")
    wide = [engine for engine in known if (engine.socket_mode or 0) & EVERYBODY]
    if not wide:
        return None
    first = wide[0]
    return Finding(
        f"every user may rule {listing(engine.label for engine in wide)}, and so the host",
        evidence=f"{first.socket} has mode {first.socket_mode:04o}",
        remedy=Remedy(
            RepairAction.CONFIGURE,
            f"{typed('chmod', 'o-w', first.socket)}; SocketMode=0660 in the systemd socket that makes it keeps it so",
        ),
        entities=tuple(place(engine.socket) for engine in wide),
    )
