"""What an upgrade stops or changes, judgement by judgement: rows that stop, change, pass and are not known."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpunode.catalog.feature_gates import first_refusal
from gpunode.checks.upgrade.preflight import newest_release, preflight
from gpunode.checks.upgrade.values import Effect
from gpunode.errors import ExitCode, UnsupportedHost
from gpunode.model.facts import HostFacts, KubernetesFacts, RuntimeFacts
from gpunode.model.files import FileFacts
from gpunode.model.kubernetes import Gate, KubeletSettings
from gpunode.model.plan import Step
from gpunode.model.spec import Spec
from gpunode.model.versions import Release
from gpunode.planner.engines.kubelet.steps import kubelet_outcomes
from gpunode.render.remedy_text import remedy_text
from tests.checks.upgrades import NO_SWAP, offering, on_containerd, told_of_docker, well
from tests.planner.engines.kubelets import CONFIG, DEFAULT, DROP_IN, FLAGS_ENV, HEAD, KUBEADM, PACKAGED

ALPHA = "alpha.kubernetes.io/nvidia-gpu"
NAME = "alpha.kubernetes.io/nvidia-gpu-name"
K3S = "/etc/rancher/k3s/config.yaml"
V1 = replace(well(), cgroup="v1")
SWAP = replace(NO_SWAP, swap=("/dev/sda2",))
NOT_READ = KubeletSettings(config=CONFIG, unread=CONFIG)
ASKS = "KubeletCgroupDriverFromCRI"
OF_PROCESS = KubeletSettings(config=CONFIG, gates={"DevicePlugins": Gate(True, "--feature-gates")})
UNIT = {PACKAGED: FileFacts(PACKAGED, KUBEADM)}
LOCKED = f"{HEAD}featureGates:\n  NodeSwap: false\n"
CRIO = RuntimeFacts("crio", "1.27.1", "", "crio.service", "/run/crio/crio.sock", active=True)


def env(flags: str) -> dict[str, str]:
    return {FLAGS_ENV: f'# by kubeadm\nKUBELET_KUBEADM_ARGS="{flags}"\n'}


def gates(text: str) -> dict[str, str]:
    return {CONFIG: f"{HEAD}featureGates:\n{text}"}


def k3s(text: str, *, words: tuple[str, ...] = (), cgroup: str = "v2") -> HostFacts:
    engine = RuntimeFacts(
        "k3s", "1.5.0", "", "k3s.service", "", active=True, embedded_in="1.31.4+k3s1", distribution_flags=words
    )
    known = KubernetesFacts(True, distribution="k3s", joined=True, running=True, version="1.31.4")
    return replace(well(), runtimes=(engine,), files={K3S: FileFacts(K3S, text)}, kubernetes=known, cgroup=cgroup)


def of(kind: str, host: HostFacts, to: Release) -> list[Effect]:
    return [one for one in preflight(host, to).effects if one.kind == kind]


@pytest.mark.parametrize(
    ("kind", "host", "to", "since", "evidence"),
    [
        ("feature-gate", well("1.27.9", gates("  # GPUs\n  DevicePlugins: true\n")), (1, 28), (1, 28),
         f"{CONFIG}:5 has DevicePlugins=true; DevicePlugins is not known from 1.28 on"),
        ("feature-gate", well("1.27.9", gates("  DevicePlugins: true\n")), (1, 38), (1, 28), f"{CONFIG}:4 has"),
        ("feature-gate", well("1.33.7", gates("  CPUManager: true\n")), (1, 34), (1, 33),
         "holds of kubelet 1.33.7 too"),
        ("feature-gate", well("1.33.7", {CONFIG: LOCKED}), (1, 38), (1, 34),
         "NodeSwap cannot be switched off from 1.34"),
        ("feature-gate", well("1.11.9", {DEFAULT: "KUBELET_EXTRA_ARGS=--feature-gates=A=true,Accelerators=true\n"}),
         (1, 12), (1, 12), f"{DEFAULT}:1 has Accelerators=true"),
        ("feature-gate", well("1.27.9", settings=OF_PROCESS), (1, 28), (1, 28),
         "--feature-gates has DevicePlugins=true"),
        ("feature-gate", k3s("kubelet-arg:\n- max-pods=50\n- feature-gates=CPUManager=true\n"), (1, 33), (1, 33),
         f"{K3S}:3 has CPUManager=true"),
        ("feature-gate", k3s("", words=("server", "--kubelet-arg", "feature-gates=CPUManager=true")), (1, 33), (1, 33),
         "the command line of k3s.service has CPUManager=true"),
        ("flag", well("1.23.9", env("--network-plugin=cni")), (1, 24), (1, 24),
         f"{FLAGS_ENV}:2 has --network-plugin, which is not known from 1.24 on"),
        ("flag", well("1.26.9", env("--container-runtime=remote")), (1, 27), (1, 27), "is not known from 1.27 on"),
        ("flag", well("1.30.9", env("--keep-terminated-pod-volumes")), (1, 31), (1, 31), f"{FLAGS_ENV}:2"),
        ("flag", well("1.33.9", env("--cloud-config=/x")), (1, 34), (1, 34), f"{FLAGS_ENV}:2"),
        ("flag", well("1.34.9", env("--pod-infra-container-image=pause:3.9")), (1, 35), (1, 35), f"{FLAGS_ENV}:2"),
        ("flag", well("1.36.0", env("--containerd=/run/x --node-ip=10.0.0.1")), (1, 37), (1, 37),
         "has --containerd, which"),
        ("flag", well("1.36.0", env("--storage-driver-table stats")), (1, 37), (1, 37),
         "has --storage-driver-table, which"),
        ("flag", well("1.11.1", {DROP_IN: f"{KUBEADM}# cAdvisor\nEnvironment=A=--cadvisor-port=0\n"}), (1, 12), (1, 12),
         f"{DROP_IN}:8 has --cadvisor-port"),
        ("flag", replace(well("1.34.2", flags=("config", "pod-infra-container-image")), files={}), (1, 35), (1, 35),
         "the command line of the running kubelet has --pod-infra-container-image"),
        ("flag", well("1.26.9", flags=("config", "container-runtime")), (1, 27), (1, 27),
         "the command line of the running kubelet has --container-runtime"),
        ("node-label", well("1.15.9", env(f"--node-labels={NAME}=T4,a=b")), (1, 16), (1, 16),
         f"{FLAGS_ENV}:2 has {NAME}"),
        ("node-label", well("1.15.9", settings=KubeletSettings(config=CONFIG, node_labels=(NAME,))), (1, 30), (1, 16),
         f"--node-labels has {NAME}"),
        ("cgroup-v1", V1, (1, 35), (1, 35), "/proc/mounts: /sys/fs/cgroup is v1; failCgroupV1 is not false"),
        ("cgroup-v1", replace(V1, cgroup="hybrid"), (1, 38), (1, 35), "/sys/fs/cgroup is hybrid"),
        ("cgroup-v1", k3s("", cgroup="v1"), (1, 35), (1, 35), "/sys/fs/cgroup is v1; failCgroupV1 is not false"),
        ("swap", replace(well(), system=SWAP), (1, 35), (1, 8), "/proc/swaps: /dev/sda2; failSwapOn is not false"),
        ("dockershim", told_of_docker("1.23.17"), (1, 24), (1, 24),
         "--container-runtime is not set, which means docker"),
        ("dockershim", told_of_docker("1.20.2", "docker"), (1, 31), (1, 24), "--container-runtime is docker"),
        ("cri-version", on_containerd("1.5.9", well("1.25.3")), (1, 26), (1, 26), "containerd has that from 1.6 on"),
        ("runtime-config", on_containerd("1.7.28", well()), (1, 38), (1, 38),
         "containerd is 1.7.28, and tells the kubelet its cgroup driver from 2.0 on"),
        ("runtime-config", replace(well(), runtimes=(CRIO,)), (1, 38), (1, 38), "crio is 1.27.1"),
    ],
    ids=[
        "a gate goes", "a gate goes on the way", "a gate that is gone already", "a gate is locked", "a gate in a flag",
        "a gate of the process alone", "k3s' kubelet-arg", "k3s' command line", "dockershim's flags",
        "--container-runtime", "1.31", "--cloud-config", "the pause image", "cAdvisor's, 1.37", "cAdvisor's, two words",
        "cAdvisor's port in a drop-in", "a flag of the process alone", "a flag in none of the files",
        "a label", "a label of the process alone",
        "cgroup v1", "hybrid cgroups", "k3s on cgroup v1", "swap", "dockershim", "dockershim by its name",
        "CRI v1alpha2", "no fallback for containerd 1.x", "no fallback for CRI-O 1.27",
    ],
)  # fmt: skip
def test_what_stops_the_kubelet(kind: str, host: HostFacts, to: Release, since: Release, evidence: str) -> None:
    (effect,) = of(kind, host, to)
    assert (effect.state, effect.since) == ("stops", since)
    assert evidence in effect.evidence
    assert effect.remedy
    assert effect.source
    before = (since[0], since[1] - 1)
    now = preflight(host, to).upgrade.now
    if now and before >= now:
        assert not [one for one in of(kind, host, before) if one.state == "stops"]


@pytest.mark.parametrize(
    ("kind", "host", "to", "since", "evidence"),
    [
        ("cgroup-v1", well(starts_on_cgroup_v1=True), (1, 35), (1, 35), "failCgroupV1 is false"),
        ("cgroup-v1", k3s("kubelet-arg: fail-cgroupv1=false\n"), (1, 38), (1, 35), "failCgroupV1 is false"),
        ("runtime-config", on_containerd("1.7.28", well()), (1, 35), (1, 35),
         "from 1.38 on the kubelet is not to start"),
        ("cgroup-driver", on_containerd("2.1.9", well("1.30.2"), effective_default="nvidia"), (1, 31), (1, 31),
         "its default runtime nvidia has SystemdCgroup false; cgroupDriver of the kubelet is systemd"),
        ("cgroup-driver",
         on_containerd("2.1.9", well("1.27.9", gates(f"  {ASKS}: true\n")), effective_default="nvidia"),
         (1, 30), (1, 28), "SystemdCgroup false"),
        ("cgroup-driver",
         on_containerd("2.1.9", well("1.32.4", gates(f"  {ASKS}: false\n")), effective_default="nvidia"),
         (1, 34), (1, 34), "SystemdCgroup false"),
        ("alpha-gpus", offering({ALPHA: "4"}, well("1.10.13")), (1, 11), (1, 11), f"capacity has {ALPHA} 4"),
        ("alpha-gpus", well("1.8.9", env("--feature-gates=Accelerators=true")), (1, 11), (1, 11), "Accelerators=true"),
    ],
    ids=["cgroup v1 as it is told", "cgroup v1 as k3s is told", "kubeadm warns", "SystemdCgroup of nvidia decides",
         "its gate asks early", "its gate does not ask until it is locked",
         "alpha GPUs", "their gate"],
)  # fmt: skip
def test_what_changes(kind: str, host: HostFacts, to: Release, since: Release, evidence: str) -> None:
    (effect,) = of(kind, replace(host, cgroup="v1") if kind == "cgroup-v1" else host, to)
    assert (effect.state, effect.since) == ("changes", since)
    assert evidence in effect.evidence
    assert effect.remedy
    assert effect.source


@pytest.mark.parametrize(
    ("host", "to"),
    [
        (well(), (1, 37)),
        (well(), (1, 34)),
        (well("1.26.9", gates("  DevicePlugins: true\n")), (1, 27)),
        (well("1.33.7", gates("  NodeSwap: true\n")), (1, 35)),
        (on_containerd("2.1.9", well("1.30.2", gates(f"  {ASKS}: false\n")), effective_default="nvidia"), (1, 33)),
        (on_containerd("2.1.9", well("1.30.2", gates(f"  {ASKS}: true\n")), effective_default="nvidia"), (1, 33)),
        (well("1.27.0", {DEFAULT: "# --feature-gates=DevicePlugins=true\n"}), (1, 28)),
        (well("1.27.0", {"/etc/sysconfig/kubelet": "KUBELET_EXTRA_ARGS=--cloud-config=x\n"}), (1, 34)),
        (well("1.15.9", env("--node-labels=node.kubernetes.io/gpu=1,nvidia.com/x=y")), (1, 16)),
        (replace(well(), cgroup="v1"), (1, 34)),
        (replace(well(starts_with_swap=True), system=SWAP), (1, 37)),
        (replace(well(files=env("--fail-swap-on=false")), system=SWAP), (1, 37)),
        (on_containerd("1.7.28", well(distribution="eks")), (1, 37)),
        (told_of_docker("1.23.17", "remote"), (1, 24)),
        (told_of_docker("1.23.17"), (1, 23)),
        (on_containerd("1.6.20", well("1.25.3")), (1, 26)),
        (on_containerd("2.0.0", well()), (1, 38)),
        (on_containerd("1.7.28", well()), (1, 34)),
        (replace(well(), runtimes=(replace(CRIO, version="1.28.0"),)), (1, 38)),
        (on_containerd("2.1.9", well("1.30.2")), (1, 31)),
        (on_containerd("2.1.9", well("1.31.0"), effective_default="nvidia"), (1, 34)),
        (on_containerd("1.7.28", well("1.30.2"), effective_default="nvidia"), (1, 31)),
        (offering({ALPHA: "0", "nvidia.com/gpu": "4"}, well("1.10.13")), (1, 11)),
        (k3s(""), (1, 38)),
        (k3s("kubelet-arg: fail-cgroupv1=false\n", cgroup="v1"), (1, 34)),
        (replace(well(files=env("--container-runtime-endpoint=unix:///var/run/crio/crio.sock")),
                 runtimes=(replace(CRIO, version="1.33.1"), *on_containerd("1.7.28", well()).runtimes)), (1, 38)),
    ],
    ids=[
        "nothing is set", "the release that it is", "a gate that is known still", "a locked gate that is on",
        "a driver of its own by its gate", "a driver of CRI by its gate",
        "a comment", "a file that the unit does not read",
        "labels of its own", "cgroup v1 before 1.35", "swap as it is told",
        "swap as a file says", "kubeadm alone warns", "docker beside CRI", "docker before 1.24",
        "containerd with CRI v1", "containerd 2", "containerd 1.7 before 1.35", "CRI-O 1.28",
        "the driver that it has", "it asks for the driver already", "containerd 1 is not asked", "no alpha GPUs",
        "k3s brings its containerd", "k3s told of cgroup v1",
        "a containerd that the kubelet does not ask",
    ],
)  # fmt: skip
def test_what_is_as_before(host: HostFacts, to: Release) -> None:
    assert [(one.kind, one.evidence) for one in preflight(host, to).effects] == []


@pytest.mark.parametrize(
    ("kind", "host", "to", "evidence"),
    [
        ("version", replace(well(None), packages=well().packages), (1, 35), "kubelet --version did not answer"),
        ("settings", replace(well(settings=NOT_READ), files=UNIT), (1, 37), f"{CONFIG} was not read"),
        ("settings", replace(well(), files={**UNIT, CONFIG: FileFacts(CONFIG, unread="over 131072 bytes")}), (1, 37),
         f"{CONFIG} was not read: over 131072 bytes"),
        ("settings", well(files={CONFIG: "featureGates: [\n"}), (1, 37), f"{CONFIG}:2"),
        ("settings", replace(well(flags=None), files={}), (1, 37), "its flags are not known"),
        ("settings", well(files={DROP_IN: "[Service]\nEnvironmentFile=-/etc/kubernetes/kubelet.env\n"}), (1, 37),
         "/etc/kubernetes/kubelet.env, which the kubelet's unit reads, was not read"),
        ("settings", replace(well(settings=None, flags=("config",)), files={}), (1, 37),
         "no configuration of the kubelet"),
        ("settings", replace(well(distribution="k0s"), files={}), (1, 37), "worker profiles"),
        ("settings", replace(well(distribution="microk8s"), files={}), (1, 37), "arguments of microk8s' kubelet"),
        ("cgroup-v1", replace(well(), cgroup=None), (1, 35), "the cgroup hierarchy is not known"),
        ("cgroup-v1", replace(well(settings=NOT_READ), cgroup="v1"), (1, 35), "its configuration was not read"),
        ("swap", replace(well(), system=None), (1, 35), "/proc/swaps was not read"),
        ("swap", replace(well(settings=NOT_READ), system=SWAP), (1, 35), "failSwapOn of the kubelet is not known"),
        ("engine", replace(well(), runtimes=()), (1, 35), "none that may is known to run"),
        ("engine", well(files=env("--container-runtime-endpoint=unix:///run/cri-dockerd.sock")), (1, 35),
         f"{FLAGS_ENV}:2 has --container-runtime-endpoint=unix:///run/cri-dockerd.sock, behind which no known engine"),
        ("engine", well(files={CONFIG: f"{HEAD}containerRuntimeEndpoint: unix:///run/x.sock\n"}), (1, 35),
         f"{CONFIG}:3 has --container-runtime-endpoint=unix:///run/x.sock"),
        ("engine", on_containerd(None, well()), (1, 35), "the version of containerd is not known"),
        ("cgroup-driver", on_containerd("2.1.9", well("1.30.2"), effective_default=None), (1, 31), "(not known)"),
    ],
    ids=[
        "no version", "the probe could not read it", "an unread file", "a file that is no YAML", "no unit was read",
        "a file of the unit's",
        "no configuration was read", "k0s", "microk8s", "no cgroups", "failCgroupV1", "no swaps", "failSwapOn",
        "no engine", "cri-dockerd", "another's socket in the configuration", "no version of the engine",
        "no default runtime",
    ],
)  # fmt: skip
def test_what_is_not_known_is_said(kind: str, host: HostFacts, to: Release, evidence: str) -> None:
    unknown = [one for one in of(kind, host, to) if one.state == "unknown"]
    assert [evidence in one.evidence for one in unknown] == [True], [one.evidence for one in of(kind, host, to)]
    assert not [one for one in of(kind, host, to) if one.state == "stops"]


def test_a_kubelet_of_unknown_release_is_judged_by_the_new_one() -> None:
    host = well(None, gates("  DevicePlugins: true\n"))
    assert {one.kind: one.state for one in preflight(host, (1, 28)).effects} == {
        "feature-gate": "stops",
        "version": "unknown",
    }


@pytest.mark.parametrize(
    ("host", "kind", "words", "command"),
    [
        (well("1.27.9", gates("  DevicePlugins: true\n")), "feature-gate", f"take DevicePlugins out of {CONFIG} before",
         ("gpunode", "setup", "--only", "kubernetes")),
        (well("1.9.9", gates("  DevicePlugins: true\n")), "feature-gate",
         "with the upgrade, and not before: kubelet 1.9.9 needs it", ("gpunode", "setup", "--only", "kubernetes")),
        (well("1.33.7", gates("  CPUManager: true\n")), "feature-gate",
         f"gpunode setup --only kubernetes takes CPUManager out of {CONFIG}",
         ("gpunode", "setup", "--only", "kubernetes")),
        (well("1.26.9", env("--container-runtime=remote")), "flag",
         "kubeadm upgrade node, before the kubelet is upgraded, takes it out of kubeadm-flags.env",
         ("gpunode", "setup", "--only", "kubernetes")),
        (well("1.26.9", {PACKAGED: f"{KUBEADM}Environment=X=--container-runtime=remote\n"}), "flag",
         "systemctl edit kubelet", ()),
        (well("1.27.9", settings=OF_PROCESS), "feature-gate", "out of --feature-gates before the upgrade", ()),
    ],
    ids=["a file of people's", "a gate that is needed until then", "setup does it today",
         "kubeadm's own file", "a package's", "no file"],
)  # fmt: skip
def test_what_to_do(host: HostFacts, kind: str, words: str, command: tuple[str, ...]) -> None:
    (effect,) = of(kind, host, (1, 38))
    assert words in effect.remedy.text
    assert effect.remedy.command == command


@pytest.mark.parametrize(
    ("version", "to", "files"),
    [
        ("1.27.9", "1.28.4", gates("  DevicePlugins: true\n  A: true\n")),
        ("1.26.9", "1.27.1", env("--container-runtime=remote --node-ip=10.0.0.1")),
        ("1.30.2", "1.37.0", env("--pod-infra-container-image=x --containerd /run/x --feature-gates=CPUManager=true")),
        ("1.33.7", "1.34.0", {CONFIG: LOCKED}),
    ],
    ids=["a gate", "a flag", "several at one place", "a locked gate"],
)
def test_what_the_remedy_says_of_setup_is_what_setup_plans(version: str, to: str, files: dict[str, str]) -> None:
    release = (1, int(to.split(".")[1]))
    found = [one for one in preflight(well(version, files), release).effects if one.state == "stops"]
    assert found
    assert all(one.remedy.command == ("gpunode", "setup", "--only", "kubernetes") for one in found)
    (step,) = kubelet_outcomes(well(to, files), Spec(only=("kubernetes",)))
    assert isinstance(step, Step)
    taken = step.title.partition("without ")[2]
    assert all(one.remedy.text.split("take ")[-1].split(" ")[0] in taken for one in found)


@pytest.mark.parametrize(
    ("host", "to", "problem"),
    [
        (replace(well(), kubernetes=KubernetesFacts()), (1, 37), "no kubelet: Kubernetes is not on this host"),
        (well("1.34.2"), (1, 33), "kubelet 1.34.2 is newer than 1.33"),
        (k3s(""), (1, 30), "k3s 1.31.4+k3s1 is newer than 1.30"),
    ],
    ids=["no kubelet", "an older release", "an older release of a distribution"],
)
def test_what_cannot_be_upgraded_is_refused(host: HostFacts, to: Release, problem: str) -> None:
    with pytest.raises(UnsupportedHost) as refused:
        preflight(host, to)
    assert refused.value.problem == problem
    assert refused.value.code == ExitCode.UNSUPPORTED
    assert refused.value.remedy


@pytest.mark.parametrize(
    ("host", "to", "says"),
    [
        (well(), (1, 38), ["listed up to 1.37", "1.36, 1.37", "API server", "4 releases", "ConfigMap kubelet-config"]),
        (well(), (1, 34), ["ConfigMap kubelet-config"]),
        (well(), (1, 35), ["API server", "ConfigMap kubelet-config"]),
        (well(distribution="eks"), (1, 35), ["API server", "EKS has the kubelet's files written"]),
        (k3s(""), (1, 32), ["API server", "k3s 1.32 brings a kubelet and a containerd"]),
    ],
    ids=["beyond the tables", "the same release", "the next release", "EKS", "k3s"],
)
def test_what_is_to_be_borne_in_mind(host: HostFacts, to: Release, says: list[str]) -> None:
    notes = preflight(host, to).notes
    assert len(notes) == len(says)
    assert all(words in note.says for words, note in zip(says, notes, strict=True))


def test_a_gate_at_two_places_has_the_first_release_that_refuses_one() -> None:
    files = {**gates("  DevicePluginCDIDevices: false\n"), **env("--feature-gates=DevicePluginCDIDevices=true")}
    (effect,) = of("feature-gate", well("1.30.1", files), (1, 38))
    assert effect.since == (1, 31)
    assert effect.evidence == (
        f"{FLAGS_ENV}:2 has DevicePluginCDIDevices=true, {CONFIG}:4 has DevicePluginCDIDevices=false; "
        "DevicePluginCDIDevices cannot be switched off from 1.31 on"
    )


def test_worst_comes_first() -> None:
    host = replace(on_containerd("1.7.28", well(files=env("--pod-infra-container-image=x"))), cgroup=None)
    assert [(one.state, one.since) for one in preflight(host, (1, 37)).effects] == [
        ("stops", (1, 35)),
        ("changes", (1, 35)),
        ("unknown", (1, 35)),
    ]


def test_the_newest_release_is_one_of_which_something_is_known() -> None:
    assert newest_release() == (1, 38)


@pytest.mark.parametrize(
    ("gate", "on", "to", "since"),
    [
        ("DevicePluginCDIDevices", False, (1, 38), (1, 31)),
        ("DevicePluginCDIDevices", True, (1, 38), (1, 34)),
        ("DevicePluginCDIDevices", True, (1, 33), None),
        ("SomethingElse", False, (1, 38), None),
    ],
    ids=["locked before it goes", "it goes", "known still", "no row"],
)
def test_the_first_release_that_refuses_a_gate(gate: str, on: bool, to: Release, since: Release | None) -> None:
    found = first_refusal(gate, to, on=on)
    assert (found and found.since) == since


def test_a_gate_whose_release_is_not_listed_whole_is_not_known_to_stay() -> None:
    (found,) = preflight(well("1.37.0", gates("  ExecProbeTimeout: true\n")), (1, 38)).effects
    assert (found.state, found.summary) == ("unknown", "whether kubelet 1.38 knows ExecProbeTimeout")


def test_a_gate_that_came_later_than_todays_release_stops_today_as_well() -> None:
    (found,) = preflight(well("1.30.14", gates("  DRAExtendedResource: true\n")), (1, 31)).effects
    assert (found.state, found.since) == ("stops", (1, 30))
    assert found.evidence.endswith("; that holds of kubelet 1.30.14 too")


@pytest.mark.parametrize(
    ("version", "to", "name"),
    [("1.25.3", (1, 26), "--logtostderr"), ("1.33.1", (1, 34), "KubeletTracing"), ("1.25.3", (1, 26), "DevicePlugins")],
)
def test_what_went_with_a_release_stops_it(version: str, to: Release, name: str) -> None:
    files = {**env("--logtostderr=true"), **gates("  KubeletTracing: false\n  DevicePlugins: false\n")}
    assert any(name in one.summary for one in preflight(well(version, files), to).effects if one.state == "stops")


def test_an_old_kernel_has_no_cgroup_v2_to_move_to() -> None:
    old = replace(well("1.34.2"), cgroup="v1", kernel=replace(well().kernel, release="3.10.0-1160.el7.x86_64"))
    (found,) = (one for one in preflight(old, (1, 35)).effects if one.kind == "cgroup-v1")
    assert "a newer release of the distribution" in remedy_text(found.remedy)
    assert "systemd.unified_cgroup_hierarchy" not in remedy_text(found.remedy)
