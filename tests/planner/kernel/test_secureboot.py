"""Secure Boot with DKMS: a key is queued once, and the console step is said until the firmware knows it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.model.action import Run
from gpunode.model.dkms import DkmsLine
from gpunode.model.facts import DriverFacts, HostFacts, SecurityFacts
from gpunode.model.plan import ForUndo, Plan
from gpunode.model.spec import DriverSource, Spec
from gpunode.planner.kernel.secureboot import PASSWORD_FILE
from gpunode.planner.plan import make_plan
from tests.planner.builders import H100, RELEASE, host, kernel, packages

CATALOG = load_catalog()
KEPT = {"nvidia-open": "595.91.07-1", "dkms": "3.0.11", "mokutil": "0.6.0", "openssl": "3.0"}


def plan(security: SecurityFacts, *, os: str = "ubuntu-24.04", loaded: str | None = None, **more: object) -> Plan:
    """The plan for a host whose driver is installed from NVIDIA's repository and signed by DKMS's key."""
    facts: HostFacts = host(
        H100,
        os=os,
        driver=DriverFacts(loaded, "open" if loaded else None, "595.91.07", "open", signer="DKMS module signing key"),
        packages=packages(KEPT, held=list(KEPT)),
        kernel=kernel(blacklisted=frozenset({"nouveau", "nova_core"})),
        security=security,
    )
    return make_plan(replace(facts, **more), Spec(only=("driver",), driver_source=DriverSource.CUDA), CATALOG)  # type: ignore[arg-type]


def ids(made: Plan) -> list[str]:
    return [step.id for step in made.steps]


ON = SecurityFacts(secure_boot=True, uefi=True)


def test_of_a_driver_that_is_loaded_the_key_is_queued_where_the_next_build_would_be_refused() -> None:
    """MOK.priv was made anew, or the firmware lost its list: what is loaded was signed with the key of before."""
    driver = DriverFacts("595.91.07", "open", "595.91.07", "open", signer="DKMS module signing key")
    built = replace(driver, dkms=(DkmsLine("nvidia", "595.91.07", RELEASE, "installed"),))
    refused = replace(ON, lockdown="integrity", mok_enrolled=False)
    assert "secureboot.enrol" in ids(plan(refused, driver=built))
    not_validated = replace(ON, lockdown="none", mok_enrolled=False)  # mokutil --disable-validation
    for security, found in (
        (ON, built),
        (replace(refused, mok_enrolled=True), built),
        (refused, driver),
        (not_validated, built),
        (replace(not_validated, lockdown=None), built),
    ):
        assert "secureboot.enrol" not in ids(plan(security, driver=found))


@pytest.mark.parametrize(
    ("security", "queued", "console"),
    [
        (ON, True, True),
        (replace(ON, mok_enrolled=False), True, True),
        (replace(ON, mok_enrolled=False, mok_pending=True), False, True),
        (replace(ON, mok_enrolled=True), False, False),
        (SecurityFacts(secure_boot=False), False, False),
        (SecurityFacts(), False, False),
    ],
    ids=["nobody knows", "not enrolled", "queued already", "enrolled", "Secure Boot is off", "no UEFI"],
)
def test_the_key_is_queued_once(security: SecurityFacts, queued: bool, console: bool) -> None:
    made = plan(security)
    assert ("secureboot.enrol" in ids(made)) is queued
    asking = {s.id: s.for_undo for s in made.steps if s.replan_after}
    assert asking == ({"secureboot.enrol": ForUndo(for_good="signing-key")} if queued else {})
    assert (made.console is not None, made.reboot is not None) == (console, console)


UBUNTUS = "580.178.04-0ubuntu0.24.04.1"
OF_UBUNTU = {"linux-image-generic": "6.8.0-51.52", "linux-headers-generic": "6.8.0-51.52", **KEPT}
OF_UBUNTU.pop("nvidia-open")


@pytest.mark.parametrize(
    ("names", "enrols"),
    [
        (("nvidia-driver-580-open", "linux-modules-nvidia-580-open-generic"), False),
        (("nvidia-headless-no-dkms-580-server-open", "linux-modules-nvidia-580-server-open-generic"), False),
        (("nvidia-headless-no-dkms-580-server-open", "nvidia-dkms-580-server-open"), True),
        (("nvidia-driver-580-open", "nvidia-dkms-580-open", "linux-modules-nvidia-580-open-generic"), True),
        (("nvidia-driver-580-open", "linux-modules-nvidia-535-open-generic"), True),
    ],
    ids=["ubuntu-drivers", "a server's", "a server's with DKMS", "DKMS's goes before it", "another branch's"],
)  # fmt: skip
def test_modules_that_ubuntu_signed_need_no_key_of_ours(names: tuple[str, ...], enrols: bool) -> None:
    facts = host(
        H100,
        driver=DriverFacts(None, None, "580.178.04", "open", signer="Canonical Ltd. Kernel Module Signing"),
        packages=packages(OF_UBUNTU | dict.fromkeys(names, UBUNTUS), held=list(names)),
        kernel=kernel(blacklisted=frozenset({"nouveau", "nova_core"})),
        security=replace(ON, mok_enrolled=False),
    )
    made = make_plan(facts, Spec(only=("driver",)), CATALOG)
    assert made.driver
    assert made.driver.kept
    assert ("secureboot.enrol" in ids(made), made.console is not None) == (enrols, enrols)


def test_a_driver_that_loaded_proves_its_key() -> None:
    assert "secureboot.enrol" not in ids(plan(ON, loaded="595.91.07"))


@pytest.mark.parametrize(
    ("os", "certificate"),
    [("ubuntu-24.04", "/var/lib/shim-signed/mok/MOK.der"), ("debian-12", "/var/lib/dkms/mok.pub")],
)
def test_the_certificate_is_where_this_distribution_signs_with(os: str, certificate: str) -> None:
    step = next(s for s in plan(ON, os=os).steps if s.id == "secureboot.enrol")
    last = step.actions[-1]
    assert isinstance(last, Run)
    assert last.argv[-2:] == (certificate, PASSWORD_FILE)


OWN = SecurityFacts(secure_boot=True, uefi=True, mok_key="/root/mok/k.key", mok_certificate="/root/mok/k.der")


@pytest.mark.parametrize(
    ("os", "security", "pair"),
    [
        ("ubuntu-24.04", OWN, ("/root/mok/k.key", "/root/mok/k.der")),
        ("ubuntu-24.04", replace(OWN, mok_certificate=None), ("/root/mok/k.key", "/var/lib/dkms/mok.pub")),
        (
            "ubuntu-24.04",
            replace(OWN, mok_key=None),
            ("/var/lib/shim-signed/mok/MOK.priv", "/var/lib/shim-signed/mok/MOK.der"),
        ),
        ("debian-12", replace(OWN, mok_key=None), ("/var/lib/dkms/mok.key", "/root/mok/k.der")),
    ],
    ids=["both", "the key alone", "the certificate alone on Ubuntu", "the certificate alone elsewhere"],
)
def test_the_key_that_dkms_was_told_is_the_one_to_enrol(
    os: str, security: SecurityFacts, pair: tuple[str, str]
) -> None:
    step = next(s for s in plan(security, os=os).steps if s.id == "secureboot.enrol")
    last = step.actions[-1]
    assert isinstance(last, Run)
    assert last.argv[-3:-1] == pair


def test_no_key_is_enrolled_where_it_is_not_known_which_one_signs() -> None:
    made = plan(replace(OWN, mok_certificate="?"))
    assert "secureboot.enrol" not in ids(made)
    assert ["which one DKMS signs with is not known" in one.text for one in made.refused] == [True]
    assert (made.console, made.reboot) == (None, None)


def test_the_password_is_in_no_word_of_the_plan() -> None:
    made = plan(replace(ON, mok_pending=True))
    assert made.console is not None
    assert PASSWORD_FILE in made.console
    script = next(s for s in plan(ON).steps if s.id == "secureboot.enrol").actions[-1]
    assert isinstance(script, Run)
    assert "umask 077" in script.stdin


def test_missing_tools_are_installed_first() -> None:
    bare = packages({k: v for k, v in KEPT.items() if k != "mokutil"}, held=list(KEPT))
    step = next(s for s in plan(ON, packages=bare).steps if s.id == "secureboot.enrol")
    assert any(isinstance(a, Run) and "mokutil" in a.packages for a in step.actions)
