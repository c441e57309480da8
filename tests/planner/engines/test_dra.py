"""`kubernetes: {mode: dra}`: what is planned for the node, what is only said, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.errors import UnsupportedHost
from gpunode.kubernetes.readiness import readiness_part
from gpunode.model.action import PutFile, Run
from gpunode.model.facts import DriverFacts, HostFacts, KubernetesFacts, RuntimeFacts, ServiceFacts
from gpunode.model.kubernetes import DevicePlugins, Gate, KubeletSettings, PluginPod, boot_drop_in
from gpunode.model.plan import Kept, Plan, Step
from gpunode.model.spec import DriverRequest, KubernetesMode, KubernetesSpec, RuntimeSpec, Spec
from gpunode.planner.driver.services import services_step
from gpunode.planner.engines.kubelet.dra import dra_outcomes
from gpunode.planner.engines.steps import runtime_steps
from gpunode.planner.install.driver import driver_choice
from gpunode.planner.plan import make_plan
from gpunode.planner.site import survey
from tests.engines.hosts import PATHS, engine_facts, file_facts, host_with
from tests.planner.builders import H100, H200, K80, P100, host, packages

CATALOG = load_catalog()
GB200 = "2941"
IMEX = "nvidia-imex.service"
DRA, PLUGIN = (Spec(kubernetes=KubernetesSpec(mode)) for mode in ("dra", "device-plugin"))
DIRECTORY = "/var/lib/kubelet/device-plugins"
UP = ServiceFacts("loaded", "active", "running", "enabled")
OFF = ServiceFacts("loaded", "inactive", "dead", "disabled")
MASKED = ServiceFacts("masked", "inactive", "dead", "masked")
POD = PluginPod("kube-system_nvidia-device-plugin-daemonset-x7x2k", "nvidia-device-plugin-ctr", 0)


def node(*devices: str, version: str = "1.36.2", runs: DevicePlugins | None = None, **more: Any) -> HostFacts:
    """A kubeadm node; `runs`: what is in the kubelet's directory."""
    plugins = runs or DevicePlugins(DIRECTORY, kubelet_socket=True)
    known = KubernetesFacts(
        True, "systemd", "kubeadm", joined=True, running=True, version=version, settings=KubeletSettings(),
        device_plugins=plugins,
    )  # fmt: skip
    made = host(*(devices or (H200,)), **{"kubernetes": known, **more})
    return replace(made, services={**made.services, "kubelet.service": UP})


def outcomes(on: HostFacts, spec: Spec = DRA) -> dict[str, Step | Kept]:
    return {one.id: one for one in dra_outcomes(on, spec, CATALOG)}


def commands(step: Step | Kept) -> list[tuple[str, ...]]:
    assert isinstance(step, Step)
    return [action.argv[1:] for action in step.actions if isinstance(action, Run)]


@pytest.mark.parametrize("mode", [None, "device-plugin"])
def test_nothing_is_planned_without_the_mode(mode: KubernetesMode | None) -> None:
    spec = Spec(kubernetes=KubernetesSpec(mode))
    assert outcomes(node(GB200), spec) == {}
    assert make_plan(node(), spec, CATALOG).steps == make_plan(node(), Spec(), CATALOG).steps


@pytest.mark.parametrize(
    ("imex", "argvs", "undone"),
    [
        (UP, [("disable", "--now", IMEX), ("mask", IMEX)], [("unmask", IMEX), ("enable", "--now", IMEX)]),
        (replace(UP, active="inactive"), [("disable", IMEX), ("mask", IMEX)], [("unmask", IMEX), ("enable", IMEX)]),
        (replace(UP, enabled="disabled"), [("disable", "--now", IMEX), ("mask", IMEX)], [("unmask", IMEX),
                                                                                         ("start", IMEX)]),
        (OFF, [("mask", IMEX)], [("unmask", IMEX)]),
        (ServiceFacts(), [("mask", IMEX)], [("unmask", IMEX)]),
        (replace(MASKED, active="active"), [("stop", IMEX)], []),
    ],
    ids=["runs", "starts at boot", "was started by hand", "off", "not installed yet", "masked while it ran"],
)  # fmt: skip
def test_the_hosts_imex_is_off_where_compute_domains_are_used(
    imex: ServiceFacts, argvs: list[tuple[str, ...]], undone: list[tuple[str, ...]]
) -> None:
    on = node(GB200)
    step = outcomes(replace(on, services={**on.services, IMEX: imex}))["kubernetes.imex"]
    assert commands(step) == argvs
    assert isinstance(step, Step)
    assert [action.argv[1:] for action in step.undo if isinstance(action, Run)] == undone
    assert not step.safe


def test_an_imex_that_is_masked_is_left_and_other_boards_have_none() -> None:
    on = node(GB200)
    kept = outcomes(replace(on, services={**on.services, IMEX: MASKED}))["kubernetes.imex"]
    assert isinstance(kept, Kept)
    assert "kubernetes.imex" not in outcomes(node(H200))


@pytest.mark.parametrize(("spec", "wanted"), [(DRA, False), (PLUGIN, True), (Spec(), True)])
def test_the_mode_wins_over_the_trays_own_service(spec: Spec, wanted: bool) -> None:
    site = survey(node(GB200), spec, CATALOG)
    step = services_step(site, driver_choice(site), now=True)
    assert isinstance(step, Step)
    assert ("enable", "--now", IMEX) in commands(step) if wanted else ("enable", "--now", IMEX) not in commands(step)


@pytest.mark.parametrize(
    ("distribution", "unit"),
    [
        ("kubeadm", "kubelet.service"),
        ("k3s", "k3s-agent.service"),
        ("rke2", "rke2-agent.service"),
        ("k0s", "k0sworker.service"),
        ("microk8s", "snap.microk8s.daemon-kubelite.service"),
    ],
)
def test_the_kubelet_starts_after_the_device_nodes(distribution: str, unit: str) -> None:
    on = node()
    on = replace(on, kubernetes=replace(on.kubernetes, distribution=distribution), services={unit: UP})
    step = outcomes(on)["kubelet.boot-order"]
    assert isinstance(step, Step)
    (put,) = step.actions  # read at the next boot: nothing is restarted, and no daemon-reload touches containers
    assert isinstance(put, PutFile)
    where, printed = readiness_part("systemd", unit, continuous=False, expect_gpus=None)
    assert (put.path, put.text.splitlines()[1:]) == (where, printed.splitlines()[1:])
    assert step.safe
    assert isinstance(outcomes(replace(on, files={where: file_facts(where, printed)}))["kubelet.boot-order"], Kept)


@pytest.mark.parametrize(
    ("path", "text", "waits"),
    [
        (boot_drop_in("kubelet.service"), "[Service]\nExecStartPre=/usr/bin/nvidia-modprobe -c 0\n", True),
        ("/etc/systemd/system/kubelet.service", "[Service]\nExecStartPre=-/usr/bin/nvidia-modprobe -u\n", True),
        (boot_drop_in("kubelet.service"), "# ExecStartPre=/usr/bin/nvidia-modprobe\n", False),
        (boot_drop_in("docker.service"), "[Service]\nExecStartPre=/usr/bin/nvidia-modprobe -c 0\n", False),
        (boot_drop_in("kubelet.service"), "[Unit]\nAfter=nvidia-modprobe.service\n", False),
    ],
    ids=["a drop-in", "the unit", "a comment", "another unit", "another setting"],
)
def test_what_makes_the_nodes_is_recognized(path: str, text: str, waits: bool) -> None:
    found = outcomes(node(files={path: file_facts(path, text)}))["kubelet.boot-order"]
    assert isinstance(found, Kept) is waits


def test_a_drop_in_of_an_earlier_gpunode_that_waits_for_cdi_is_replaced() -> None:
    path = boot_drop_in("kubelet.service")
    _, printed = readiness_part("systemd", "kubelet.service", continuous=False, expect_gpus=None)
    before = printed.replace("[Service]", "After=gpunode-mig.service nvidia-cdi-refresh.service\n[Service]", 1)
    step = outcomes(node(files={path: file_facts(path, before)}))["kubelet.boot-order"]
    assert isinstance(step, Step)
    (put,) = step.actions
    assert isinstance(put, PutFile)
    assert put.text.splitlines()[1:] == printed.splitlines()[1:]
    assert "left out at boot" in step.why
    theirs = path.replace("50-gpunode", "90-site")
    kept = outcomes(node(files={path: file_facts(path, printed), theirs: file_facts(theirs, before)}))
    assert isinstance(kept["kubelet.boot-order"], Kept)  # what a site wrote is the site's


def test_a_drop_in_that_cannot_be_read_is_refused_and_one_without_systemd_said() -> None:
    path = boot_drop_in("kubelet.service")
    unread = replace(file_facts(path, None), unread="permission denied")
    refused = outcomes(node(files={path: unread}))["kubelet.boot-order"]
    assert isinstance(refused, Kept)
    assert refused.refused
    for on, says in ((node(init="openrc"), "openrc starts"), (node(kubernetes=KubernetesFacts()), "no kubelet")):
        kept = outcomes(on)["kubelet.boot-order"]
        assert isinstance(kept, Kept)
        assert (says in kept.text, kept.beware) == (True, True)


def gated(version: str, **gates: bool) -> HostFacts:
    on = node(version=version)
    settings = KubeletSettings({name: Gate(value, "--feature-gates") for name, value in gates.items()})
    return replace(on, kubernetes=replace(on.kubernetes, settings=settings))


@pytest.mark.parametrize(
    ("on", "says"),
    [
        (gated("1.32.9"), "it has no DynamicResourceAllocation=true; apiserver"),
        (gated("1.33.7", DynamicResourceAllocation=True), "by itself: apiserver (with resource.k8s.io"),
        (gated("1.34.3", DynamicResourceAllocation=False), "it has DynamicResourceAllocation=false (--feature-gates)"),
        (gated("1.34.1"), "documented for 1.34.2 or later"),
        (gated("1.34.2"), None),
        (gated("1.36.2"), None),
        (node(kubernetes=KubernetesFacts(True)), "the kubelet's release is not known"),
    ],
)  # fmt: skip
def test_a_release_that_is_not_ready_is_said(on: HostFacts, says: str | None) -> None:
    found = outcomes(on).get("kubernetes.release")
    if says is None:
        assert found is None
        return
    assert isinstance(found, Kept)
    assert says in found.text
    assert found.beware


def test_what_the_kubelet_was_told_is_not_guessed_and_a_plugin_that_nobody_looked_for_is_said() -> None:
    on = node(version="1.33.7")
    unread = replace(on, kubernetes=replace(on.kubernetes, settings=None, device_plugins=None), root=False)
    found = outcomes(unread)
    release, plugin = found["kubernetes.release"], found["kubernetes.device-plugin"]
    assert isinstance(release, Kept)
    assert "it has no" not in release.text
    assert isinstance(plugin, Kept)
    assert (plugin.text.endswith("that needs root"), plugin.beware) == (True, True)


def loaded(version: str, *devices: str) -> HostFacts:
    lead = {"nvidia-open": f"{version}-0ubuntu1"}
    return node(*devices, driver=DriverFacts(loaded=version, installed=version), packages=packages(lead))


def driver(text: str) -> Spec:
    return replace(DRA, driver=DriverRequest.parse(text))


HAS_DRA = DevicePlugins(DIRECTORY, dra=frozenset({"gpu.nvidia.com"}))
REFUSED: Mapping[str, tuple[HostFacts, Spec, str, str]] = {
    "a socket of a device plugin": (
        node(runs=DevicePlugins(DIRECTORY, sockets={"nvidia-gpu.sock": True})), DRA,
        "a device plugin gives out this node's GPUs, and a DRA driver is wanted", "socket nvidia-gpu.sock",
    ),
    "its pod": (node(runs=DevicePlugins(DIRECTORY, pods=(POD,))), DRA, "a device plugin gives out", POD.pod),
    "its devices": (
        node(runs=DevicePlugins(DIRECTORY, registered={"nvidia.com/gpu": ("GPU-1", "GPU-2")})), DRA,
        "a device plugin gives out", "nvidia.com/gpu × 2",
    ),
    "a DRA driver": (node(runs=HAS_DRA), PLUGIN, "a DRA driver gives out this node's GPUs, and a device plugin",
                     "plugins_registry of the kubelet has gpu.nvidia.com"),
    "Kubernetes before 1.32": (node(version="1.31.4"), DRA, "kubelet 1.31.4 has no DRA", "Kubernetes 1.34.2 or later"),
    "an old driver that is kept": (loaded("550.163.01"), DRA, "needs driver 565 or later, and 550.163.01 is older",
                                   "565 is for GPUs"),
    "an old driver that is asked for": (node(H100), driver("550.163.01"), "needs driver 565 or later", "565 is"),
    "an old branch": (node(H100), driver("535"), "needs driver 565 or later, and 535", "565 is for GPUs"),
    "too old for ComputeDomains": (loaded("570.148.08", GB200), DRA, "needs driver 570.158.01 or later",
                                   "ComputeDomains, which these boards are for"),
    "GPUs whose last driver is older": (node(K80), driver("470"), "needs driver 565 or later", "565 is for GPUs"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_is_refused_with_its_reason(case: str) -> None:
    on, spec, problem, evidence = REFUSED[case]
    with pytest.raises(UnsupportedHost) as refused:
        make_plan(on, spec, CATALOG)
    assert problem in refused.value.problem
    assert evidence in refused.value.evidence
    assert refused.value.remedy


@pytest.mark.parametrize(
    ("on", "spec"),
    [
        (node(runs=HAS_DRA), DRA),
        (node(runs=DevicePlugins(DIRECTORY, registered={"nvidia.com/hostdev": ("0000:5e:00.0",)})), DRA),
        (node(runs=DevicePlugins(DIRECTORY, pods=(POD,))), PLUGIN),
        (node(runs=DevicePlugins(DIRECTORY, pods=(POD,))), Spec()),
        (node(runs=DevicePlugins(DIRECTORY, pods=(POD,))), replace(DRA, only=("driver",))),
        (loaded("570.148.08"), DRA),
        (loaded("550.163.01"), replace(DRA, only=("runtime",))),
        (node(P100), DRA),
        (node(GB200), DRA),
    ],
    ids=["DRA and DRA", "a plugin of network cards", "plugin and plugin", "nobody said", "the driver alone",
         "565 is enough", "the engines alone", "580 is Pascal's last", "GB200"],
)  # fmt: skip
def test_what_goes_together_is_planned(on: HostFacts, spec: Spec) -> None:
    assert isinstance(make_plan(on, spec, CATALOG), Plan)


TABLE = '[plugins."io.containerd.grpc.v1.cri".containerd'
RUNC_TOML = f'version = 2\n{TABLE}.runtimes.runc]\nruntime_type = "io.containerd.runc.v2"\n'
NVIDIA_TOML = f"""version = 2
{TABLE}]
default_runtime_name = "nvidia"
{TABLE}.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
{TABLE}.runtimes.nvidia]
runtime_type = "io.containerd.runc.v2"
{TABLE}.runtimes.nvidia.options]
BinaryName = "/usr/bin/nvidia-container-runtime"
"""
CDI_TOML = NVIDIA_TOML.replace(f"{TABLE}]", f'[plugins."io.containerd.grpc.v1.cri"]\nenable_cdi = true\n{TABLE}]', 1)
NVIDIA: dict[str, Any] = {"effective_default": "nvidia", "handlers": ("nvidia", "runc")}


def containerd(text: str, version: str = "1.7.28", **observed: Any) -> RuntimeFacts:
    return engine_facts("containerd", version, cdi=False, **observed)


def written(*engines: RuntimeFacts, files: Mapping[str, str], spec: Spec = DRA) -> dict[str, Step | Kept]:
    steps, kept = runtime_steps(host_with(*engines, files=files, kubelet="systemd"), spec)
    found: list[Step | Kept] = [*steps, *kept]
    return {one.id: one for one in found}


def text_of(step: Step | Kept) -> str:
    assert isinstance(step, Step)
    return next(action.text for action in step.actions if isinstance(action, PutFile))


def test_the_pods_engine_gets_cdi_and_keeps_its_default() -> None:
    step = written(containerd(RUNC_TOML), files={PATHS["containerd"]: RUNC_TOML})["containerd.default"]
    assert "enable_cdi = true" in text_of(step)
    assert "default_runtime_name" not in text_of(step)
    assert isinstance(step, Step)
    assert step.why.startswith("pods get their GPUs by CDI from the DRA driver; the default runtime is left as it is")


def test_a_default_that_is_nvidia_is_left_too_unless_no_default_asks_for_the_old_one() -> None:
    files = {PATHS["containerd"]: NVIDIA_TOML}
    found = written(containerd(NVIDIA_TOML, **NVIDIA), files=files)
    assert set(found) == {"containerd.default"}
    assert 'default_runtime_name = "nvidia"' in text_of(found["containerd.default"])
    assert "enable_cdi = true" in text_of(found["containerd.default"])
    asked = written(
        containerd(NVIDIA_TOML, **NVIDIA), files=files, spec=replace(DRA, runtime=RuntimeSpec(default=False))
    )
    assert "containerd.no-default" in asked


def test_cdi_that_is_in_the_file_and_not_in_the_running_containerd_needs_a_restart() -> None:
    step = written(containerd(CDI_TOML, **NVIDIA), files={PATHS["containerd"]: CDI_TOML})["containerd.default"]
    assert isinstance(step, Step)
    assert "containerd's CDI support is read at start" in step.why
    on = replace(containerd(CDI_TOML, **NVIDIA), cdi=True)
    assert isinstance(written(on, files={PATHS["containerd"]: CDI_TOML})["containerd.default"], Kept)


def test_docker_beside_it_is_peoples_and_gets_nvidia_as_its_default() -> None:
    docker = engine_facts("docker", "26.1.5", effective_source="docker /info")
    files = {PATHS["docker"]: "{}\n", PATHS["containerd"]: RUNC_TOML}
    step = written(docker, containerd(RUNC_TOML), files=files)["docker.default"]
    assert '"default-runtime": "nvidia"' in text_of(step)
    assert "cdi" not in text_of(step)


def test_an_engine_without_cdi_is_refused() -> None:
    old = written(containerd(RUNC_TOML, "1.6.20"), files={PATHS["containerd"]: RUNC_TOML})["containerd.default"]
    assert isinstance(old, Kept)
    assert (old.text, old.refused) == ("containerd 1.6.20 has no CDI", True)
    assert "kubernetes.mode" in old.remedy.text
