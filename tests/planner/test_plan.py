from __future__ import annotations

from dataclasses import replace

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.errors import ExitCode, UnsupportedHost, UsageError
from gpunode.model.action import PutFile, Run
from gpunode.model.facts import (
    DriverFacts,
    HostFacts,
    JournalFacts,
    SecurityFacts,
    ServiceFacts,
)
from gpunode.model.files import FileFacts
from gpunode.model.plan import Plan
from gpunode.model.spec import DriverRequest, Spec, ToolkitRequest
from gpunode.planner.drift import same_plan
from gpunode.planner.plan import make_plan
from gpunode.planner.resume import PATH, UNIT, resume_step
from gpunode.render.machine import plan_from_json, plan_to_json
from tests.engines.hosts import PATHS, engine_facts, file_facts

from .builders import B200, H100, L4, T4, V100, gpus, host, kernel, packages, switches

CATALOG = load_catalog()
V = "595.91.07-1"
DRIVER = {"nvidia-open": V, "nvidia-kernel-open-dkms": V, "libcuda1": V}
TOOLKIT = dict.fromkeys(CATALOG.toolkit.packages, "1.20.0-1")


def ids(plan: Plan) -> list[str]:
    return [step.id for step in plan.steps]


def commands(plan: Plan) -> list[str]:
    return [" ".join(a.argv) for step in plan.steps for a in step.actions if isinstance(a, Run)]


def ready(*devices: str) -> HostFacts:
    running = ServiceFacts("loaded", "active", "running", "enabled")
    return host(
        *devices,
        pci=gpus(*devices, driver="nvidia"),
        driver=DriverFacts("595.91.07", "open", "595.91.07", "open"),
        packages=packages({**DRIVER, **TOOLKIT}, held=[*DRIVER, *TOOLKIT]),
        kernel=kernel("nvidia", "nvidia_uvm", blacklisted=frozenset({"nouveau", "nova_core"})),
        services={"nvidia-persistenced.service": running},
    )


def test_an_engine_that_is_refused_leaves_driver_and_toolkit_to_be_done() -> None:
    bare = host(H100)
    broken = file_facts(PATHS["containerd"], "version = 2\n[plugins\n")
    files = {**bare.files, broken.path: broken}
    plan = make_plan(replace(bare, runtimes=(engine_facts("containerd", "1.7.24"),), files=files), Spec(), CATALOG)
    assert {"driver.install", "toolkit.install"} <= set(ids(plan))
    (refused,) = plan.refused
    assert (refused.id, plan.code) == ("containerd.default", ExitCode.UNSUPPORTED)
    assert f"{broken.path}:2" in refused.text
    assert plan_from_json(plan_to_json(plan)).refused[0].text == refused.text
    assert same_plan(plan_from_json(plan_to_json(plan)), plan) is plan


def test_a_bare_host_gets_everything_in_the_order_an_engineer_types_it() -> None:
    plan = make_plan(host(H100, kernel=kernel(headers=False)), Spec(), CATALOG)
    assert ids(plan) == [
        "repo.cuda", "kernel.headers", "driver.install", "kernel.nouveau", "driver.load", "driver.services",
        "repo.toolkit", "toolkit.install",
    ]  # fmt: skip
    assert plan.reboot is None
    assert [s.id for s in plan.steps if s.replan_after] == ["driver.install", "toolkit.install"]
    assert plan.replan_after


def test_what_a_killed_run_left_open_is_closed_once_all_is_right() -> None:
    cut_off = replace(ready(H100), journal=JournalFacts(("containerd.default",)))
    assert ids(make_plan(cut_off, Spec(), CATALOG)) == ["journal.close"]
    assert make_plan(cut_off, Spec(only=("driver",)), CATALOG).empty, "a part of the spec cannot tell"


def test_what_an_earlier_setup_left_for_the_next_boot_goes_with_its_spec() -> None:
    """It would set the host up as was wanted then."""
    spec = '/root/a "b" 50%$\\n/runs/r1/resume.yaml'
    put = resume_step(("/usr/bin/gpunode", "setup"), (spec,)).actions[0]
    assert isinstance(put, PutFile)
    waiting = ServiceFacts("loaded", "inactive", "dead", "enabled")
    files = {PATH: file_facts(PATH, put.text.replace("[Service]", "[Service]\nExecStopPost=/bin/true"))}
    left = replace(ready(H100), services={**ready(H100).services, UNIT: waiting}, files=files)
    plan = make_plan(left, Spec(), CATALOG)
    assert ids(plan) == ["resume.remove"]
    assert commands(plan) == [f"systemctl disable {UNIT}", f"/bin/rm -f {PATH} {spec}", "systemctl daemon-reload"]


@pytest.mark.parametrize(
    "now",
    [
        ServiceFacts(),
        ServiceFacts("loaded", "activating", "start", "disabled"),
        ServiceFacts("loaded", "activating", "start", "enabled"),
    ],
    ids=["there is none", "it runs", "it runs, and systemd has not looked since it was disabled"],
)
def test_the_setup_that_goes_on_after_the_boot_does_not_remove_itself(now: ServiceFacts) -> None:
    assert make_plan(replace(ready(H100), services={**ready(H100).services, UNIT: now}), Spec(), CATALOG).empty


def test_a_ready_node_has_an_empty_plan() -> None:
    plan = make_plan(ready(H100), Spec(), CATALOG)
    assert ids(plan) == []
    assert plan.empty
    assert plan.kept


def test_the_pin_is_installed_before_the_driver() -> None:
    told = commands(make_plan(host(T4), Spec(), CATALOG))
    pin = next(n for n, c in enumerate(told) if "nvidia-driver-pinning-595" in c)
    driver = next(n for n, c in enumerate(told) if c.endswith(" nvidia-open"))
    assert pin < driver


def test_the_fabric_manager_comes_only_with_switches() -> None:
    plan = make_plan(host(pci=gpus(H100, H100) + switches(4)), Spec(), CATALOG)
    assert "systemctl enable --now nvidia-fabricmanager.service" in commands(plan)
    assert plan.about.nvswitches == 4
    assert not any("fabric" in c for c in commands(make_plan(host(H100), Spec(), CATALOG)))


def test_nouveau_on_the_gpu_asks_for_a_reboot_and_loads_nothing_now() -> None:
    plan = make_plan(host(pci=gpus(B200, driver="nova_core")), Spec(), CATALOG)
    assert plan.reboot is not None
    assert "nova_core holds" in plan.reboot
    assert "modprobe nvidia" not in commands(plan)


@pytest.mark.parametrize(
    ("reboots", "enabled", "wanted_by", "cloud", "said"),
    [(True, "disabled", (), None, True), (True, "enabled", ("multi-user.target",), None, False),
     (True, "disabled", None, None, False), (True, "disabled", ("nomad.service",), None, False),
     (True, "disabled", (), "gke", False), (False, "disabled", (), None, False)],
    ids=["by hand", "enabled", "not known", "by another unit", "by a cloud", "no reboot"],
)  # fmt: skip
def test_what_the_reboot_leaves_stopped_is_said(
    reboots: bool, enabled: str, wanted_by: tuple[str, ...] | None, cloud: str | None, said: bool
) -> None:
    unit = ServiceFacts("loaded", "active", "running", enabled, wanted_by=wanted_by)
    before = host(pci=gpus(H100, driver="nouveau" if reboots else None), services={"docker.service": unit})
    engine = replace(engine_facts("docker", "28.5.2"), active=True)
    node = replace(before, runtimes=(engine,), kubernetes=replace(before.kubernetes, distribution=cloud))
    plan = make_plan(node, Spec(), CATALOG)
    warnings = [kept.text for kept in plan.kept if kept.id == "reboot.engines" and kept.beware]
    assert (plan.reboot is not None) is reboots
    assert [text.partition(";")[2] for text in warnings] == [" systemctl enable docker.service sees to that"] * said


def test_a_killed_transaction_is_finished_first() -> None:
    cut_off = replace(
        ready(H100), packages=packages({**DRIVER, **TOOLKIT}, held=[*DRIVER, *TOOLKIT], broken=["libcuda1"])
    )
    plan = make_plan(cut_off, Spec(), CATALOG)
    assert [s.id for s in plan.steps if s.replan_after] == ["packages.repair"]
    assert ids(plan)[0] == "packages.repair"


def test_a_loose_driver_is_held() -> None:
    loose = replace(ready(H100), packages=packages({**DRIVER, **TOOLKIT}, held=[*TOOLKIT]))
    assert ids(make_plan(loose, Spec(), CATALOG)) == ["driver.hold"]
    assert ids(make_plan(loose, Spec(hold=False), CATALOG)) == []


def test_an_unknown_key_is_asked_for() -> None:
    facts = host(L4, os="fedora-43", packages=packages({"gnupg2": "2.4"}, manager="dnf5"))
    with pytest.raises(UnsupportedHost, match="signing key") as caught:
        make_plan(facts, Spec(), CATALOG)
    assert "--trust-key" in caught.value.remedy.text
    plan = make_plan(facts, Spec(trust_keys=("A" * 40,)), CATALOG)
    assert any("A" * 40 in c for c in commands(plan))


def test_the_vendors_own_source_is_used_and_not_doubled() -> None:
    url = "https://developer.download.nvidia.com/compute/cuda/repos/ubuntu2404/x86_64/"
    keyring = "/usr/share/keyrings/cuda-archive-keyring.gpg"
    theirs = FileFacts("/etc/apt/sources.list.d/cuda-ubuntu2404-x86_64.list", f"deb [signed-by={keyring}] {url} /\n")
    primaries = {keyring: ("EB693B3035CD5710E231E123A4B469963BF863CC",)}
    plan = make_plan(host(H100, packages=packages({}, sources=(theirs,), primaries=primaries)), Spec(), CATALOG)
    assert "repo.cuda" not in ids(plan)
    assert any(f"Dir::Etc::sourcelist={theirs.path}" in c for c in commands(plan))


@pytest.mark.parametrize(
    ("facts", "spec", "says"),
    [
        pytest.param(host(), Spec(), "no NVIDIA GPU", id="no GPU"),
        pytest.param(
            replace(host(H100), unread={"pci": "not understood: 0000:42:00.0"}),
            Spec(),
            "which GPUs are on the PCI bus is not known",
            id="a GPU that was not understood",
        ),
        pytest.param(
            replace(host(H100), unread={"driver": "not understood: surrogates not allowed"}),
            Spec(),
            "which driver is here is not known",
            id="a driver that was not understood",
        ),
        pytest.param(
            replace(host(H100), unread={"driver": "not understood: surrogates not allowed"}),
            Spec(driver=DriverRequest.parse("none"), only=("driver",)),
            "which driver is here is not known",
            id="one that should be removed",
        ),
        pytest.param(host(H100, os="gentoo"), Spec(), "not a distribution", id="a distribution without a row"),
        pytest.param(
            host(H100, driver=DriverFacts(container=True)),
            Spec(),
            "the GPU Operator is in charge",
            id="a driver container",
        ),
        pytest.param(host(H100, driver=DriverFacts(runfile=True)), Spec(), "run file", id="a runfile"),
    ],
)
def test_a_host_it_must_not_touch_is_refused(facts: HostFacts, spec: Spec, says: str) -> None:
    with pytest.raises(UnsupportedHost, match=says):
        make_plan(facts, spec, CATALOG)


def test_only_runtime_works_anywhere() -> None:
    assert ids(make_plan(host(H100, os="gentoo"), Spec(only=("runtime",)), CATALOG)) == []


def test_a_password_in_the_proxy_is_refused() -> None:
    with pytest.raises(UsageError, match="password"):
        make_plan(host(H100), Spec(proxy="http://me:secret@proxy:3128"), CATALOG)


def test_secure_boot_on_ubuntu_takes_the_signed_modules() -> None:
    plan = make_plan(host(H100, security=SecurityFacts(secure_boot=True)), Spec(), CATALOG)
    assert any("linux-modules-nvidia-595-server-open-generic" in c for c in commands(plan))
    assert plan.reboot is None


def test_secure_boot_on_debian_needs_the_console() -> None:
    plan = make_plan(host(H100, os="debian-12", security=SecurityFacts(secure_boot=True)), Spec(), CATALOG)
    assert plan.reboot is not None
    assert "MokManager" in plan.reboot


@pytest.mark.parametrize(
    ("os", "command"),
    [
        pytest.param("rocky-9", "dnf -y module enable nvidia-driver:580-open", id="EL 9 chooses a module stream"),
        pytest.param("debian-sid", "debian13/x86_64/8793F200.pub", id="sid uses debian13"),
    ],
)
def test_each_family_is_told_in_its_own_words(os: str, command: str) -> None:
    plan = make_plan(host(H100, os=os), Spec(driver=DriverRequest.parse("580")), CATALOG)
    assert any(command in c for c in commands(plan))


def test_packages_without_a_module_for_this_kernel_are_built() -> None:
    there = packages({**DRIVER, **TOOLKIT, "dkms": "3.0.11"}, held=[*DRIVER, *TOOLKIT])
    unbuilt = replace(
        ready(H100),
        packages=there,
        driver=DriverFacts(),
        kernel=kernel(blacklisted=frozenset({"nouveau", "nova_core"})),
    )
    plan = make_plan(unbuilt, Spec(), CATALOG)
    assert ids(plan) == ["driver.build", "driver.load"]
    assert [s.id for s in plan.steps if s.replan_after] == ["driver.build"]
    assert "dkms autoinstall -k 6.8.0-51-generic" in commands(plan)


def test_a_driver_that_was_replaced_below_the_loaded_one_asks_for_a_reboot() -> None:
    observed = DriverFacts("580.178.04", "open", "595.91.07", "open", busy=("4242 python3",))
    stale = replace(ready(H100), driver=observed)
    plan = make_plan(stale, Spec(), CATALOG)
    assert ids(plan) == []
    assert plan.reboot == "driver 580.178.04 is loaded, 595.91.07 is installed"


def test_a_kept_driver_gets_the_fabric_manager_of_its_own_version() -> None:
    switched = replace(ready(H100), pci=gpus(H100, driver="nvidia") + switches(4))
    plan = make_plan(switched, Spec(), CATALOG)
    assert ids(plan) == ["driver.fabric", "driver.services"]
    assert [s.id for s in plan.steps if s.replan_after] == ["driver.fabric"]
    assert any(c.endswith("nvidia-fabricmanager=595.91.07-*") for c in commands(plan)), "-1, later -1ubuntu1"


def test_the_archives_fabric_manager_is_asked_for_at_the_drivers_version_too() -> None:
    """The archive may be ahead of the driver here, and a fabric manager of another version does not start."""
    there = dict.fromkeys(("nvidia-headless-no-dkms-595-server-open", "nvidia-utils-595-server"), f"{V[:-2]}-0ubuntu1")
    archives = packages({**there, **TOOLKIT}, held=[*there, *TOOLKIT])
    switched = replace(ready(H100), packages=archives, pci=gpus(H100, driver="nvidia") + switches(4))
    plan = make_plan(switched, Spec(), CATALOG)
    step = next(step for step in plan.steps if step.id == "driver.fabric")
    assert step.title == "install nvidia-fabricmanager-595 595.91.07"
    assert any(command.endswith("nvidia-fabricmanager-595=595.91.07-*") for command in commands(plan))


def test_what_is_versioned_apart_from_the_driver_is_not_asked_for_at_its_version() -> None:
    facts = ready(B200)
    marked = replace(facts, driver=replace(facts.driver, switch_management=("0000:05:00.0",)))
    step = next(s for s in make_plan(marked, Spec(), CATALOG).steps if s.id == "driver.fabric")
    assert step.title == "install nvidia-fabricmanager 595.91.07, nvlsm, infiniband-diags"
    said = [a.description or " ".join(a.argv) for a in step.actions if isinstance(a, Run)]
    assert any(text.endswith("nvidia-fabricmanager=595.91.07-* nvlsm infiniband-diags") for text in said)


def test_a_gpu_given_to_virtual_machines_has_no_say_and_all_of_them_are_a_reason_to_stop() -> None:
    mixed = host(pci=(*gpus(V100, driver="vfio-pci"), *gpus(B200)[:1]))
    plan = make_plan(mixed, Spec(only=("driver",)), CATALOG)
    assert plan.driver
    assert plan.driver.reasons[0].startswith("1 × Blackwell runs")
    with pytest.raises(UnsupportedHost, match="bound to vfio-pci"):
        make_plan(host(pci=gpus(B200, driver="vfio-pci")), Spec(only=("driver",)), CATALOG)


def test_where_no_branch_fits_none_is_promised() -> None:
    """NVIDIA's repository for Azure Linux has open modules only."""
    for words in ("auto", "580"):
        with pytest.raises(UnsupportedHost, match="no current driver for the GPUs") as refused:
            make_plan(host(V100, os="azure-3"), Spec(driver=DriverRequest.parse(words)), CATALOG)
        assert "install branch 580 manually" in refused.value.remedy.text


@pytest.mark.parametrize(("version", "warned"), [("1.19.0", True), ("1.19.1", False)])
def test_a_toolkit_with_a_known_hole_is_installed_with_a_word_of_warning(version: str, warned: bool) -> None:
    spec = Spec(toolkit=ToolkitRequest.parse(version), only=("toolkit",))
    step = next(s for s in make_plan(host(L4), spec, CATALOG).steps if s.id == "toolkit.install")
    assert ("CVE-2026-24260, fixed in 1.19.1" in step.title) is warned
