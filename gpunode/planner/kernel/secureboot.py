"""Secure Boot with a module that this machine builds: its key, and what only a person at the console can do."""

from __future__ import annotations

from gpunode import resources
from gpunode.catalog.distros import DKMS_KEY
from gpunode.model.action import Action, Run
from gpunode.model.dkms import builds_driver
from gpunode.model.driver import DriverChoice
from gpunode.model.plan import ENROL_STEP, ForUndo, Kept, Step
from gpunode.packages.base import Wanted, download_and_install, missing
from gpunode.planner.site import Site, through_proxy
from gpunode.remedy import Remedy, RepairAction

PASSWORD_FILE = "/run/gpunode/mok-password"  # gone with the reboot, when nobody needs it any more
TOOLS = ("mokutil", "openssl")
HALF_A_KEY = 65  # enrol_key.sh
_UNKNOWN = "?"


def enrol_step(site: Site, driver: DriverChoice) -> Step | Kept | None:
    """Queue the signing key for MokManager; None where Secure Boot is off or the firmware knows the key already."""
    if not driver.kept or site.host.security.mok_pending or not _may_be_refused(site, driver):
        return None
    pair = _signing_key(site)
    if pair is None:
        return Kept(
            ENROL_STEP,
            "no signing key is queued for enrolment in the firmware's key list: which one DKMS signs with is not known",
            refused=True,
            evidence="mok_signing_key and mok_certificate in /etc/dkms/framework.conf and framework.conf.d/*.conf are "
            "believed as paths in directories that root alone writes",
            remedy=Remedy(RepairAction.CONFIGURE, "queue its certificate (mokutil --import), or name both so"),
        )
    key, certificate = pair
    lacking = missing([Wanted(name) for name in TOOLS], site.host.packages)
    actions: list[Action] = []
    if lacking:
        runs = (site.backend.refresh_all(), *download_and_install(site.backend, lacking))
        actions += [through_proxy(run, site.spec.proxy) for run in runs]
    argv = ("sh", "-s", "--", key, certificate, PASSWORD_FILE)
    description = f"mokutil --import {certificate}"
    script = resources.script("kernel/enrol_key")
    way = f"bring the one that is missing back, or move the other away: then a new key is made, as {key}"
    half = ((HALF_A_KEY, way),)
    actions.append(Run(argv, timeout_s=60, stdin=script, description=description, remedies=half))
    return Step(
        ENROL_STEP,
        f"queue {certificate} for enrolment in the firmware's key list",
        "Secure Boot is on, and the firmware refuses modules signed with a key it does not know",
        tuple(actions),
        replan_after=True,
        for_undo=ForUndo(for_good="signing-key"),
    )


def _signing_key(site: Site) -> tuple[str, str] | None:
    """The private key and the certificate that DKMS signs with (prepare_mok of dkms 3); None: not known."""
    named, certificate = site.host.security.mok_key, site.host.security.mok_certificate
    if _UNKNOWN in (named, certificate):
        return None
    if named is None and site.distro.mok != DKMS_KEY:  # Ubuntu's own, whatever certificate stands there alone
        return site.distro.mok
    key, usual = DKMS_KEY
    return named or key, certificate or usual


def needs_enrolment(site: Site, driver: DriverChoice) -> bool:
    """Secure Boot refuses a DKMS module until its key, which is known, is enrolled."""
    return _may_be_refused(site, driver) and _signing_key(site) is not None


def _may_be_refused(site: Site, driver: DriverChoice) -> bool:
    """A distribution's prebuilt modules are signed by a key that the firmware knows."""
    security, loaded = site.host.security, bool(site.host.driver.loaded)
    if security.mok_enrolled is False and security.locked_down and builds_driver(site.host.driver.dkms):
        loaded = False  # it was signed with an earlier key, and the next build is refused
    return bool(security.secure_boot) and not driver.signed and not (security.mok_enrolled or loaded)


def console_words(site: Site, driver: DriverChoice) -> str | None:
    """What a person has to do at the console; None when nothing waits there."""
    if not site.host.security.mok_pending and not needs_enrolment(site, driver):
        return None
    return (
        f"note the one-time password that setup leaves (sudo cat {PASSWORD_FILE}); reboot, press a key in MokManager "
        "at the console within ten seconds, choose Enroll MOK, Continue, Yes and type it; then gpunode setup goes on "
        "(password lost: mokutil --revoke-import, and setup makes a new one)"
    )
