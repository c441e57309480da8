"""How a host is reached over SSH, and whether the hosts of one run are alike.

What keeps a host from being reached is no finding, since it has no report: its error names the check (`check_id`).
"""

from __future__ import annotations

from gpunode.advice import named
from gpunode.checks import needs
from gpunode.checks.registry import Context, check
from gpunode.checks.words import CHRONY, chrony
from gpunode.model.facts import HostFacts
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Passed, Severity
from gpunode.remedy import Remedy, RepairAction, setup

VERSIONS = "fleet.version-uniform"
ALONE = "nothing to compare: only a run over several hosts compares them, when all have ended (no line of jsonl waits)"
SKEW_S = 2  # from there on logs of two hosts no longer tell what came first, and short tokens are refused
FAR_S = 3600  # the clock is not off but was never set, or the machine is another's


def over_ssh(host: HostFacts) -> str | None:
    return None if host.connection else "not reached over SSH: it is this machine, or a recording"


@check(
    "fleet.hostkey",
    Severity.ERROR,
    title="the host shows the key that is known of it",
    reads="the key that sshd shows; known_hosts (as ssh does with StrictHostKeyChecking)",
    remedy=Remedy(
        RepairAction.NONE,
        "find out why the key differs (reinstalled? another machine?); only when it is explained, ssh-keygen -R",
    ),
    needs=(over_ssh,),
)
def hostkey(host: HostFacts, context: Context) -> CheckOutcome | Passed:
    """The host shows a key that is not known, is not the one that is known, or is revoked. Nothing is sent to it.

    It has no report then: the host's error has this id.
    """
    assert host.connection is not None
    return Passed(f"{host.connection.host_key}, as in {host.connection.known_in}")


@check(
    "fleet.ssh-sudo",
    Severity.ERROR,
    title="the host lets us in, and gives root's rights without a question",
    reads="the login over SSH; sudo -n or doas -n; the uid of the probe",
    remedy=Remedy(
        RepairAction.NONE,
        "log in as root with --user, or allow this user NOPASSWD in sudoers, or give --ask-become-pass",
    ),
    needs=(over_ssh,),
)
def ssh_sudo(host: HostFacts, context: Context) -> CheckOutcome | Passed:
    """The host cannot be reached or logged in to, or root's rights cannot be had; with none of them much is unknown.

    A host that is not reached, or whose sudo refuses, has no report: the host's error has this id.
    """
    login = host.connection
    assert login is not None
    if not host.root:
        return Finding(
            "the probe had no root's rights: what only root reads is unknown",
            evidence=f"logged in as {login.user}" + (", and what sudo ran was not uid 0" if login.becomes else ""),
            remedy=Remedy(
                RepairAction.CONFIGURE,
                f"log in as root with --user, or let {named(login.user)} become root: (root) NOPASSWD in sudoers, "
                "and no runas_default of another user",
            ),
            severity=Severity.WARNING,
        )
    if not login.becomes:
        return Passed(f"logged in as {login.user}, who is root")
    asked = "a password was at hand for sudo" if login.may_ask else "sudo or doas asked nothing"
    return Passed(f"logged in as {login.user}, became root; {asked}")


@check(
    "fleet.clock-skew",
    Severity.WARNING,
    title=f"the host's clock is within {SKEW_S} s of this machine's",
    reads="the time of a file that the probe makes, against this machine's clock when it was sent and had answered",
    remedy=Remedy(RepairAction.RESTART_SERVICE, CHRONY),
    needs=(over_ssh, needs.machine),
)
def clock_skew(host: HostFacts, context: Context) -> CheckOutcome | Passed:
    """The clock is off by more than the way to the host explains: logs do not fit, tokens and certificates are refused.

    The kernel gives files whole seconds, and nobody knows how long the way there took: both are the uncertainty. Where
    every host shows it, it is this machine's clock.
    """
    skew = host.connection.skew if host.connection else None
    if skew is None:
        return NotApplicable("the host's clock was not read")
    off_s = abs(skew.ahead_s)
    if off_s > FAR_S:
        said = f"{off_s / 3600:.0f} h {_side(skew.ahead_s)} this machine's"
    else:
        said = f"{off_s:.1f} s {_side(skew.ahead_s)} this machine's"
    measured = f"its clock is {said}, give or take {skew.error_s:.1f} s"
    if off_s > SKEW_S + skew.error_s:
        return Finding(
            f"the clock is {said}",
            evidence=f"{measured} (half of the round trip, and of the second that was read)",
            remedy=Remedy(
                RepairAction.RESTART_SERVICE,
                f"{chrony(host)}, and chronyc makestep; where every host shows it, do that on this machine",
            ),
        )
    if skew.error_s > SKEW_S:
        return NotApplicable(f"the answer took too long to tell: {measured}")
    return Passed(measured)


def _side(ahead_s: float) -> str:
    return "ahead of" if ahead_s > 0 else "behind"


@check(
    VERSIONS,
    Severity.WARNING,
    title="hosts with the same GPU have the same driver, toolkit, kernel, engines and VBIOS",
    reads="the facts of all hosts of this run that have the same GPU models",
    remedy=Remedy(RepairAction.UPGRADE, "upgrade the hosts that differ: ", setup(), " with one spec for all of them"),
    needs=(needs.gpu,),
)
def version_uniform(host: HostFacts, context: Context) -> CheckOutcome:
    """The host has another version than most hosts with the same GPU: what works on those need not work here.

    Hosts with other GPU models are not compared, nor what only one host has. Where no version is that of most, every
    host says which there are.
    """
    return NotApplicable(ALONE)
