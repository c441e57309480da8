"""A node for NVIDIA's DRA driver: what it lacks is found, and what is a device plugin's does not apply."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.checks import run_all
from gpunode.checks.agreement import agreed
from gpunode.cli.options.spec import texts_of_words
from gpunode.facts.wire import file_facts
from gpunode.model.facts import HostFacts, ServiceFacts
from gpunode.model.kubernetes import Gate, KubeletSettings, boot_drop_in
from gpunode.model.plan import Plan
from gpunode.model.report import CheckOutcome, CheckReport, Finding, NotApplicable, Severity
from gpunode.model.spec import KubernetesMode, KubernetesSpec, RuntimeSpec, Spec
from gpunode.planner.plan import make_plan
from gpunode.specfile import put_all
from tests.checks import hosts as h
from tests.checks import test_k8s as k
from tests.checks import test_svc as svc

DRA = frozenset({"gpu.nvidia.com"})
DROP_IN = boot_drop_in("kubelet.service")
ORDER = "[Service]\nExecStartPre=-/usr/bin/nvidia-modprobe -c 0\n"
RUNC: dict[str, Any] = {"effective_default": "runc", "handlers": ("runc",)}
ENGINE = replace(h.CONTAINERD_ENGINE, cdi=True, **RUNC)
KUBELET = ServiceFacts("loaded", "active", "running", "enabled")
TRAY = replace(h.GPU, device="2941")  # GB200
ON, OFF = (KubeletSettings({"DynamicResourceAllocation": Gate(on, "--feature-gates")}) for on in (True, False))


def node(version: str = "1.36.2", /, **changes: Any) -> HostFacts:
    """One that is ready for the DRA driver, and has it."""
    host = k.kubernetes(k.plugins(**k.GONE, dra=DRA), version=version)
    ready = replace(
        host,
        runtimes=(ENGINE,),
        files={**host.files, DROP_IN: file_facts(DROP_IN, ORDER)},
        services={**host.services, "kubelet.service": KUBELET},
    )
    return replace(ready, **changes)


def told(version: str, settings: KubeletSettings | None) -> HostFacts:
    return k.kubernetes(node(), version=version, settings=settings)


def driver(version: str, **changes: Any) -> HostFacts:
    return node(driver=replace(h.READY.driver, loaded=version), **changes)


def engine(**changes: Any) -> HostFacts:
    return node(runtimes=(replace(ENGINE, **changes),))


def report(host: HostFacts, mode: KubernetesMode | None) -> CheckReport:
    return run_all(host, Spec(kubernetes=KubernetesSpec(mode)), load_catalog(), today=h.TODAY)


def outcome(id: str, host: HostFacts, mode: KubernetesMode | None = "dra") -> CheckOutcome:
    return report(host, mode).results[id].outcome


NO_DRA = node(kubernetes=replace(node().kubernetes, device_plugins=k.NEVER.kubernetes.device_plugins))
PLUGIN = node(kubernetes=k.WELL_KUBERNETES)
NOTHING_WAITS = node(files=k.WELL.files)
IN_A_CIRCLE = node(files={DROP_IN: file_facts(DROP_IN, f"[Unit]\nAfter=x nvidia-cdi-refresh.service\n{ORDER}")})


@pytest.mark.parametrize(
    ("id", "host"),
    [
        ("k8s.dra", node()),
        ("k8s.dra-needs", node()),
        ("k8s.dra-needs", node("1.34.2")),
        ("k8s.dra-needs", driver("565.57.01")),
        ("k8s.dra-needs", driver("570.158.01", pci=(TRAY,))),
        ("k8s.dra-boot", node()),
        ("svc.imex", replace(svc.unit(svc.IMEX, svc.OFF, svc.TRAYS), kubernetes=node().kubernetes)),
        ("svc.imex", replace(svc.unit(svc.IMEX, ServiceFacts(), svc.TRAYS), kubernetes=node().kubernetes)),
    ],
)
def test_what_is_ready_passes(id: str, host: HostFacts) -> None:
    assert outcome(id, host) is None


FAULTS: Mapping[str, tuple[str, HostFacts, KubernetesMode | None, str, Severity | None]] = {
    "CDI is off": ("k8s.dra-needs", engine(cdi=False), "dra", "CRI Status: enableCDI false", None),
    "CDI is off, and nobody said how": ("k8s.dra-needs", engine(cdi=False), None, "enableCDI false", None),
    "no CDI yet": ("k8s.dra-needs", engine(cdi=None, version="1.6.20"), "dra", "from 1.7 on", None),
    "an old driver": ("k8s.dra-needs", driver("550.163.01"), "dra", "it needs 565 or later", None),
    "too old for ComputeDomains": (
        "k8s.dra-needs",
        driver("570.148.08", pci=(TRAY,)),
        "dra",
        "ComputeDomains need 570.158.01",
        None,
    ),
    "an old cluster": (
        "k8s.dra-needs",
        told("1.31.4", k.WELL_SETTINGS),
        "dra",
        "it has no DRA; the driver is for",
        None,
    ),
    "a gate is missing": (
        "k8s.dra-needs",
        told("1.33.7", k.WELL_SETTINGS),
        "dra",
        "no DynamicResourceAllocation=true",
        None,
    ),
    "a gate is off": ("k8s.dra-needs", told("1.34.2", OFF), "dra", "it has DynamicResourceAllocation=false", None),
    "what nobody read": ("k8s.dra-needs", told("1.33.7", None), "dra", "apiserver", Severity.WARNING),
    "the rest of the cluster": ("k8s.dra-needs", told("1.33.7", ON), "dra", "apiserver", Severity.WARNING),
    "before what is documented": ("k8s.dra-needs", told("1.34.1", None), "dra", "for 1.34.2 or", Severity.WARNING),
    "a drop-in of an earlier gpunode": ("k8s.dra-boot", IN_A_CIRCLE, "dra", f"{DROP_IN}: After= has nvidia-cdi", None),
    "such a drop-in, by hand": ("k8s.dra-boot", IN_A_CIRCLE, None, f"{DROP_IN}: After= has nvidia-cdi-refresh", None),
    "and beside the device plugin": ("k8s.dra-boot", IN_A_CIRCLE, "device-plugin", f"{DROP_IN}: After= has nv", None),
    "nothing makes the nodes": ("k8s.dra-boot", NOTHING_WAITS, "dra", "no drop-in of kubelet.service", None),
    "a device plugin": ("k8s.dra", PLUGIN, "dra", f"{k.DIRECTORY}, /var/log/pods or processes", None),
    "a DRA driver": ("k8s.dra", node(), "device-plugin", "plugins_registry of the kubelet has gpu.nvidia", None),
    "nobody gives them out": ("k8s.dra", NO_DRA, "dra", "plugins_registry has no socket of gpu.nvidia.com", None),
    "the host's imex runs": ("svc.imex", svc.TRAYS, "dra", "ActiveState active, enabled unit file", None),
    "the host's imex will run": (
        "svc.imex",
        svc.unit(svc.IMEX, replace(svc.OFF, enabled="enabled"), svc.TRAYS),
        "dra",
        "ActiveState inactive, enabled",
        None,
    ),
}


@pytest.mark.parametrize("case", FAULTS)
def test_a_fault_is_found_and_quoted(case: str) -> None:
    id, host, mode, quoted, severity = FAULTS[case]
    found = outcome(id, host, mode)
    assert isinstance(found, Finding)
    assert quoted in found.evidence
    assert (bool(found.remedy), found.severity) == (True, severity)


@pytest.mark.parametrize(
    ("version", "settings", "says"),
    [
        ("1.31.4", k.WELL_SETTINGS, "upgrade the cluster to 1.34.2 or later"),
        ("1.33.7", k.WELL_SETTINGS, "set DynamicResourceAllocation=true in kubelet, apiserver, scheduler and"),
        ("1.34.2", OFF, "take DynamicResourceAllocation=false out of"),
        ("1.34.1", ON, "upgrade the cluster to 1.34.2 or later"),
    ],
)
def test_what_a_kubelet_lacks_says_what_mends_it(version: str, settings: KubeletSettings, says: str) -> None:
    found = outcome("k8s.dra-needs", told(version, settings), "dra")
    assert isinstance(found, Finding)
    assert found.remedy.text.startswith(says)


def test_a_node_of_which_nobody_said_that_it_is_for_dra_is_not_mended_by_a_setup_that_does_not_know() -> None:
    found = outcome("k8s.dra-needs", engine(cdi=False), None)
    assert isinstance(found, Finding)
    assert found.steps == ()
    assert isinstance(found.remedy.parts[0], str)  # `check --fix` takes those alone that begin with a setup
    assert found.remedy.command == ("gpunode", "setup", "--only", "runtime", "--kubernetes-mode", "dra")


def test_several_needs_are_one_finding_with_every_remedy() -> None:
    found = outcome("k8s.dra-needs", driver("550.163.01", runtimes=(replace(ENGINE, cdi=False),)))
    assert isinstance(found, Finding)
    assert found.summary.startswith("driver 550.163.01 is too old for NVIDIA's DRA driver; CDI is off in containerd")
    assert found.remedy.text.endswith("setup --driver 580; then gpunode setup --only runtime")
    assert found.steps == ("containerd.default",)


UNKNOWN: tuple[tuple[str, HostFacts, KubernetesMode | None, str], ...] = (
    ("k8s.dra-needs", node(), "device-plugin", "no DRA driver gives out GPUs here"),
    ("k8s.dra-needs", NO_DRA, None, "no DRA driver gives out GPUs here"),
    ("k8s.dra-needs", told("", None), "dra", "release is not known"),
    ("k8s.dra-needs", node(driver=replace(h.READY.driver, loaded=None)), "dra", "no driver is loaded"),
    ("k8s.dra-needs", node(runtimes=()), "dra", "no engine that speaks CRI"),
    ("k8s.dra-needs", node(runtimes=(h.DOCKER_ENGINE,)), "dra", "no engine that speaks CRI"),
    ("k8s.dra-needs", engine(cdi=None), "dra", "did not say whether CDI is on"),
    ("k8s.dra-boot", NOTHING_WAITS, None, "kubernetes.mode of the spec is not dra"),
    ("k8s.dra-boot", NOTHING_WAITS, "device-plugin", "kubernetes.mode of the spec is not dra"),
    ("k8s.dra-boot", replace(NOTHING_WAITS, init="openrc"), "dra", "openrc, not systemd"),
    ("k8s.dra-boot", node(files={DROP_IN: replace(file_facts(DROP_IN, ""), text=None, unread="denied")}), "dra",
     "was not read: denied"),
    ("rt.effective-default", node(), "dra", "any default will do"),
    ("rt.containerd-live", node(), "dra", "names no runtime"),
    ("rt.containerd-file", node(files={h.CONTAINERD_ENGINE.config_path: file_facts("", "version = 2\n")}), "dra",
     "names no runtime"),
    *((id, PLUGIN, "dra", "NVIDIA's DRA driver gives out the GPUs")
      for id in ("k8s.dp-dir", "k8s.dp-container", "k8s.runtimeclass", "k8s.dp-socket", "k8s.dp-registered",
                 "k8s.dp-version", "k8s.image-pull", "k8s.allocated-ghosts", "k8s.sharing-config", "k8s.cpumanager",
                 "k8s.capacity")),
)  # fmt: skip


@pytest.mark.parametrize(("id", "host", "mode", "reason"), [pytest.param(*r, id=f"{r[0]}: {r[3]}") for r in UNKNOWN])
def test_what_does_not_apply_says_why(id: str, host: HostFacts, mode: KubernetesMode | None, reason: str) -> None:
    told = outcome(id, host, mode)
    assert isinstance(told, NotApplicable)
    assert reason in told.reason


def test_dockers_default_runtime_is_wanted_in_mode_dra_all_the_same() -> None:
    docker = replace(h.DOCKER_ENGINE, **RUNC)
    found = outcome("rt.effective-default", node(runtimes=(ENGINE, docker)))
    assert isinstance(found, Finding)
    assert found.summary.startswith("docker still runs with runc")
    assert found.steps == ("docker.default",)


@pytest.mark.parametrize("mode", [None, "device-plugin"])
def test_without_mode_dra_the_device_plugins_checks_are_as_they_were(mode: KubernetesMode | None) -> None:
    with_mode, without = report(k.WELL, mode), run_all(k.WELL, Spec(), load_catalog(), today=h.TODAY)
    assert {i: r.outcome for i, r in with_mode.results.items()} == {i: r.outcome for i, r in without.results.items()}


@pytest.mark.parametrize("mode", [None, "device-plugin"])
def test_setup_plans_no_drop_in_without_mode_dra_so_it_is_printed_anew(mode: KubernetesMode | None) -> None:
    found = outcome("k8s.dra-boot", IN_A_CIRCLE, mode)
    assert isinstance(found, Finding)
    assert found.steps == ()
    assert isinstance(found.remedy.parts[0], str)  # `check --fix` takes those alone that begin with a setup
    assert DROP_IN in found.remedy.text
    assert found.remedy.command == ("gpunode", "k8s", "readiness", "--form", "systemd", "--unit", "kubelet.service")


@pytest.mark.parametrize(
    ("host", "says"),
    [
        (replace(engine(cdi=False), files=k.WELL.files), " adds one, without a restart"),
        (replace(IN_A_CIRCLE, runtimes=(replace(ENGINE, cdi=False),)), " takes it out, without a restart"),
    ],
    ids=["there is none", "of an earlier gpunode"],
)
def test_what_is_found_the_plan_mends(host: HostFacts, says: str) -> None:
    spec = Spec(kubernetes=KubernetesSpec("dra"), runtime=RuntimeSpec())

    def plan(options: tuple[str, ...]) -> Plan:
        return make_plan(host, put_all(spec, texts_of_words(options)), load_catalog())

    found = agreed(run_all(host, spec, load_catalog(), today=h.TODAY), plan).findings
    assert found["k8s.dra-needs"].remedy.text == "gpunode setup --only runtime"
    assert found["k8s.dra-boot"].remedy.text == f"gpunode setup --only kubernetes{says}"
    assert not any(id.startswith("setup.") for id in found)


def test_a_node_that_a_dra_driver_serves_is_not_told_to_make_nvidia_its_default() -> None:
    """Nobody said which mode is wanted, and what is there says it."""
    host = node()
    engine = replace(ENGINE, effective_default="runc", handlers=("runc",))
    found = run_all(replace(host, runtimes=(engine,)), None, load_catalog(), today=h.TODAY).results
    for id in ("rt.effective-default", "rt.containerd-live", "rt.containerd-file"):
        assert not isinstance(found[id].outcome, Finding), (id, found[id].outcome)
