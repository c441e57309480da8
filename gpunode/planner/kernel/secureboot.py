"""Secure Boot with a module that this machine builds: its key, and what only a person at the console can do."""

from __future__ import annotations

from gpunode import resources
from gpunode.model.action import Action, Run
from gpunode.model.driver import DriverChoice
from gpunode.model.plan import ENROL_STEP, ForUndo, Step
from gpunode.packages.base import Wanted, download_and_install, missing
from gpunode.planner.site import Site, through_proxy

PASSWORD_FILE = "/run/gpunode/mok-password"  # gone with the reboot, when nobody needs it any more
TOOLS = ("mokutil", "openssl")
HALF_A_KEY = 65  # enrol_key.sh


def enrol_step(site: Site, driver: DriverChoice) -> Step | None:
    """Queue the signing key for MokManager; None where Secure Boot is off or the firmware knows the key already."""
    if not driver.kept or not needs_enrolment(site, driver) or site.host.security.mok_pending:
        return None
    key, certificate = site.distro.mok
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


def needs_enrolment(site: Site, driver: DriverChoice) -> bool:
    """Secure Boot refuses a DKMS module until its key is enrolled; a distribution's prebuilt modules are signed."""
    known = site.host.security.mok_enrolled or bool(site.host.driver.loaded)
    return bool(site.host.security.secure_boot) and not driver.signed and not known


def console_words(site: Site, driver: DriverChoice) -> str | None:
    """What a person has to do at the console; None when nothing waits there."""
    if not site.host.security.mok_pending and not needs_enrolment(site, driver):
        return None
    return (
        f"note the one-time password that setup leaves (sudo cat {PASSWORD_FILE}); reboot, press a key in MokManager "
        "at the console within ten seconds, choose Enroll MOK, Continue, Yes and type it; then gpunode setup goes on "
        "(password lost: mokutil --revoke-import, and setup makes a new one)"
    )
