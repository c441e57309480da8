"""When the loaded driver may be replaced without a reboot, and when nothing at all may be changed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.errors import UnsupportedHost
from gpunode.model.action import Run
from gpunode.model.facts import DriverFacts, HostFacts
from gpunode.model.gpu_users import gpu_users
from gpunode.model.plan import Plan
from gpunode.model.spec import DriverRequest, Spec
from gpunode.planner.plan import make_plan
from tests.planner.builders import H100, gpus, host, kernel, packages

CATALOG = load_catalog()
ONLY_DRIVER = Spec(only=("driver",))


def running(loaded: str = "580.178.04", installed: str = "595.91.07", busy: tuple[str, ...] = ()) -> HostFacts:
    """A host whose packages were upgraded below the loaded module."""
    return host(
        H100,
        pci=gpus(H100, driver="nvidia"),
        driver=DriverFacts(loaded, "open", installed, "open", busy=busy),
        packages=packages({"nvidia-open": f"{installed}-1"}, held=["nvidia-open"]),
        kernel=kernel("nvidia", "nvidia_uvm", blacklisted=frozenset({"nouveau", "nova_core"})),
    )


def plan(facts: HostFacts, spec: Spec = ONLY_DRIVER) -> Plan:
    return make_plan(facts, spec, CATALOG)


def ids(made: Plan) -> list[str]:
    return [step.id for step in made.steps]


SERVICES = ("812 nvidia-persiste", "901 nv-fabricmanage")
STALE = "driver 580.178.04 is loaded, 595.91.07 is installed"
TO_595 = replace(ONLY_DRIVER, driver=DriverRequest.parse("595"), allow_gpu_in_use=True)


@pytest.mark.parametrize(
    ("facts", "swapped", "reboot"),
    [
        (running(), True, None),
        (running(busy=SERVICES), True, None),
        (running(busy=(*SERVICES, "4242 python3")), False, STALE),
        (replace(running(), root=False), False, STALE),
        (running(loaded="595.91.07"), False, None),
    ],
    ids=["nobody", "the driver's own services", "somebody's work", "not known without root", "nothing to swap"],
)
def test_swap_or_reboot(facts: HostFacts, swapped: bool, reboot: str | None) -> None:
    made = plan(facts)
    assert ("driver.swap" in ids(made), made.reboot) == (swapped, reboot)
    assert made.replan_after is swapped


def test_the_other_flavour_at_the_same_version_is_swapped_too() -> None:
    facts = running(loaded="595.91.07")
    other = replace(facts.driver, loaded_flavour="proprietary")
    step = next(s for s in plan(replace(facts, driver=other)).steps if s.id == "driver.swap")
    assert "the proprietary module is loaded, the open one is installed" in step.why


def test_a_gpu_that_nouveau_holds_needs_the_reboot_all_the_same() -> None:
    made = plan(replace(running(), pci=gpus(H100, driver="nouveau")))
    assert made.reboot is not None
    assert "nouveau holds" in made.reboot


def test_the_driver_is_not_changed_below_running_work() -> None:
    facts = running("580.178.04", "580.178.04", busy=("4242 python3", "4243 python3"))
    wanted = replace(ONLY_DRIVER, driver=DriverRequest.parse("595"))
    with pytest.raises(UnsupportedHost) as refused:
        plan(facts, wanted)
    assert "4242 python3, 4243 python3" in refused.value.problem
    assert "--allow-gpu-in-use" in refused.value.remedy.text
    assert "driver.install" in ids(plan(facts, replace(wanted, allow_gpu_in_use=True)))
    assert "driver.install" in ids(plan(running("580.178.04", "580.178.04", busy=SERVICES), wanted))


@pytest.mark.parametrize(
    ("busy", "reboot"),
    [((), None), (("4242 python3",), "driver 580.178.04 is loaded, branch 595 is to replace it")],
    ids=["nobody", "somebody"],
)
def test_a_plan_for_another_driver_says_whether_it_will_take_a_reboot(
    busy: tuple[str, ...], reboot: str | None
) -> None:
    made = plan(running("580.178.04", "580.178.04", busy=busy), TO_595)
    assert made.reboot == reboot
    assert any("loaded one without a reboot" in kept.text for kept in made.kept) is (reboot is None)
    started = [a.argv for step in made.steps for a in step.actions if isinstance(a, Run) and "--now" in a.argv]
    assert started == [], "nothing of the new driver can start on the old module"


def test_users_are_everybody_but_the_drivers_own_services() -> None:
    assert gpu_users(running(busy=(*SERVICES, "7 trtexec"))) == ("7 trtexec",)
