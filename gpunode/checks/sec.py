"""Who else may rule the host, and whether what gpunode knows of CVEs is recent."""

from __future__ import annotations

from gpunode.advice import listing, typed
from gpunode.checks import needs
from gpunode.checks.registry import Context, check
from gpunode.model.entities import place
from gpunode.model.facts import HostFacts
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Passed, Severity
from gpunode.remedy import Remedy, RepairAction, gpunode

EVERYBODY = 0o002  # may write, which a socket calls connecting
HELPER = "/usr/bin/nvidia-modprobe"
STALE = Remedy(
    RepairAction.NONE,
    "install a newer gpunode on the machine that runs it; ",
    gpunode("catalog", "--stale", ssh=False),
    " lists the rows that are old",
)


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


@check(
    "sec.modprobe-suid",
    Severity.WARNING,
    title="nvidia-modprobe is as ordinary users need it, and only root may change it",
    reads=f"mode and owner of {HELPER}",
    remedy=Remedy(RepairAction.CONFIGURE, f"chown root: {HELPER}; chmod 4755 {HELPER}"),
    needs=(needs.gpu, needs.host_driver),
)
def modprobe_suid(host: HostFacts, context: Context) -> CheckOutcome | Passed:
    """nvidia-modprobe is not set-uid on a workstation: a user's program may find no device nodes.

    Others than root may write it: they rule the host, since root runs it too.
    """
    helper = host.driver.modprobe
    if helper is None:
        return NotApplicable(f"the mode of {HELPER} was not read")
    if helper == "absent":
        return NotApplicable(f"{HELPER} is not installed")
    quoted = f"{HELPER} has mode {helper.mode:04o}, uid {helper.uid} and gid {helper.gid}"
    if helper.writable:
        return Finding(
            "others than root may change nvidia-modprobe, which root runs",
            evidence=quoted,
            remedy=Remedy(
                RepairAction.CONFIGURE,
                f"install its package again, as its content is no longer certain; chown root: {HELPER}; "
                f"chmod 4755 {HELPER}",
            ),
            severity=Severity.ERROR,
            entities=(place(HELPER),),
        )
    if helper.setuid or context.profile_of(host) != "workstation":
        return Passed(f"{quoted}{'' if helper.setuid else ': only root loads modules and makes device nodes with it'}")
    return Finding(
        "nvidia-modprobe is not set-uid: where no service makes the device nodes, a user's program finds none",
        evidence=quoted,
        remedy=Remedy(RepairAction.CONFIGURE, f"install its package again, or chmod 4755 {HELPER}"),
        entities=(place(HELPER),),
    )


@check(
    "sec.cve-db-age",
    Severity.WARNING,
    title="gpunode's catalog was looked up in the last 180 days",
    reads="the newest date in gpunode's catalog, against the clock of the machine that runs gpunode",
    remedy=STALE,
)
def cve_db_age(host: HostFacts, context: Context) -> CheckOutcome:
    """The catalog that decides on branches, end of support, CVEs and Xids is out of date."""
    from gpunode.catalog.age import STALE_DAYS, newest_row

    # Not the host's clock: the catalog is this machine's, and a host that lost its clock would be warned of or spared.
    if context.today is None:
        return NotApplicable("today's date is not known")
    newest = newest_row(context.catalog)
    days = (context.today - newest).days
    if days < -1:  # a row of today may be of tomorrow in another time zone
        return NotApplicable(f"the clock says {context.today}, and the catalog's newest row is of {newest}")
    if days <= STALE_DAYS:
        return None
    return Finding(
        f"gpunode's catalog is {days} days old: newer drivers, ends of support and CVEs are not known to it",
        evidence=f"its newest row was looked up on {newest}; today is {context.today}",
        remedy=STALE,
    )
