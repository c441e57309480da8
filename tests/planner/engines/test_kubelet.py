"""What keeps a kubelet of some version from starting is taken out of the file that says it, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.facts.collect import assemble
from gpunode.model.action import PutFile, Run
from gpunode.model.facts import HostFacts, ServiceFacts
from gpunode.model.files import FileFacts
from gpunode.model.kubernetes import KubeletSettings
from gpunode.model.plan import Kept, Step
from gpunode.model.spec import Spec
from gpunode.planner.engines.kubelet.steps import kubelet_outcomes
from gpunode.planner.plan import make_plan
from tests.planner.engines.kubelets import (
    ASKED_AS,
    CONFIG,
    DEFAULT,
    DROP_IN,
    FLAGS_ENV,
    HEAD,
    KUBEADM,
    PACKAGED,
    node,
)

PLAIN = Spec()
OLD = "--feature-gates=DevicePlugins=true"
ASKED = Spec(only=("kubernetes",))
LABEL = "alpha.kubernetes.io/nvidia-gpu-name"
K3S, K3S_D = "/etc/rancher/k3s/config.yaml", "/etc/rancher/k3s/config.yaml.d/90-gpu.yaml"
MICROK8S = "/var/snap/microk8s/current/args/kubelet"


def step(host: HostFacts, spec: Spec = PLAIN) -> Step:
    (found,) = (one for one in kubelet_outcomes(host, spec) if isinstance(one, Step))
    return found


def written(found: Step) -> dict[str, str]:
    return {one.path: one.text for one in found.actions if isinstance(one, PutFile)}


@pytest.mark.parametrize(
    ("version", "distribution", "path", "before", "after", "says"),
    [
        ("1.28.4", "kubeadm", CONFIG, f"{HEAD}featureGates:\n  # GPUs\n  DevicePlugins: true\n  Keep: true\nx: 1\n",
         f"{HEAD}featureGates:\n  # GPUs\n  Keep: true\nx: 1\n", "DevicePlugins is not known from 1.28 on"),
        ("1.34.0", "kubeadm", CONFIG, f'{HEAD}featureGates: {{"NodeSwap": false, "A": true}}\n',
         f'{HEAD}featureGates: {{"A": true}}\n', "NodeSwap cannot be switched off from 1.34 on"),
        ("1.20.2", "kubeadm", DEFAULT, "KUBELET_EXTRA_ARGS=--feature-gates=Accelerators=true,CPUManager=true\n",
         "KUBELET_EXTRA_ARGS=--feature-gates=CPUManager=true\n", "Accelerators is not known from 1.12 on"),
        ("1.20.2", "kubeadm", DEFAULT, "KUBELET_EXTRA_ARGS=--allow-privileged --node-ip=10.0.0.1\n",
         "KUBELET_EXTRA_ARGS=--node-ip=10.0.0.1\n", "--allow-privileged is not known from 1.15 on"),
        ("1.20.2", "kubeadm", CONFIG, f"{HEAD}featureGates:\n  DevicePluginCDIDevices: true\n  A: true\n",
         f"{HEAD}featureGates:\n  A: true\n", "DevicePluginCDIDevices is not known before 1.28"),
        ("1.20.2", "kubeadm", FLAGS_ENV, f'K="--node-labels=a/b=c,{LABEL}=x,node.kubernetes.io/d=e"\n',
         'K="--node-labels=a/b=c,node.kubernetes.io/d=e"\n', f"{LABEL} is no label that a kubelet"),
        ("1.30.1", "k3s", K3S, f"kubelet-arg:\n- node-labels={LABEL}=x\n- max-pods=50\n",
         "kubelet-arg:\n- max-pods=50\n", f"{LABEL} is no label that a kubelet may set"),
        ("1.27.1", "kubeadm", FLAGS_ENV, 'KUBELET_KUBEADM_ARGS="--container-runtime=remote --node-ip=10.0.0.1"\n',
         'KUBELET_KUBEADM_ARGS="--node-ip=10.0.0.1"\n', "--container-runtime is not known from 1.27 on"),
        ("1.24.0", "kubeadm", FLAGS_ENV, 'KUBELET_KUBEADM_ARGS="--network-plugin cni --x=1"\n',
         'KUBELET_KUBEADM_ARGS="--x=1"\n', "--network-plugin is not known from 1.24 on"),
        ("1.28.4", "kubeadm", DROP_IN, f'{KUBEADM}Environment="KUBELET_EXTRA_ARGS={OLD}"\n',
         f'{KUBEADM}Environment="KUBELET_EXTRA_ARGS="\n', "DevicePlugins is not known from 1.28 on"),
        ("1.33.2", "k3s", K3S, 'token: x\nkubelet-arg:\n  - "feature-gates=CPUManager=true"  # pin\n  - max-pods=50\n',
         "token: x\nkubelet-arg:\n  - max-pods=50\n", "CPUManager is not known from 1.33 on"),
        ("1.33.2", "k3s", K3S_D, "kubelet-arg+: feature-gates=A=true,CPUManager=true\n",
         "kubelet-arg+: feature-gates=A=true\n", "CPUManager is not known from 1.33 on"),
        ("1.35.0", "rke2", "/etc/rancher/rke2/config.yaml", "kubelet-arg:\n- pod-infra-container-image=pause:3.9\n",
         "", "--pod-infra-container-image is not known from 1.35 on"),
        ("1.28.0", "microk8s", MICROK8S, "--kubeconfig=/x\n# by hand\n--feature-gates=DevicePlugins=true\n--x=1\n",
         "--kubeconfig=/x\n# by hand\n--x=1\n", "DevicePlugins is not known from 1.28 on"),
    ],
    ids=["KubeletConfiguration", "a locked gate, in a flow mapping", "/etc/default/kubelet", "a flag that stands alone",
         "a gate that came later", "a label among others", "a label, in k3s' config.yaml", "kubeadm-flags.env",
         "a flag of two words", "a drop-in's Environment=", "k3s' config.yaml", "k3s' config.yaml.d, one word",
         "rke2's, the only one", "microk8s' arguments"],
)  # fmt: skip
def test_what_the_release_does_not_know_goes(
    version: str, distribution: str, path: str, before: str, after: str, says: str
) -> None:
    unit = {PACKAGED: KUBEADM} if distribution == "kubeadm" else {}
    found = step(node(version, {**unit, path: before}, distribution=distribution))
    assert written(found) == {path: after}
    assert says in found.why
    again = node(version, {**unit, path: after}, distribution=distribution)
    assert kubelet_outcomes(again, Spec()) == []


@pytest.mark.parametrize(
    ("version", "files"),
    [
        ("1.27.9", {CONFIG: f"{HEAD}featureGates:\n  DevicePlugins: true\n"}),
        ("1.33.9", {CONFIG: f"{HEAD}featureGates:\n  NodeSwap: false\n"}),
        ("1.28.4", {DEFAULT: "# --feature-gates=DevicePlugins=true\n"}),
        ("1.28.4", {CONFIG: f"{HEAD}evictionHard:\n  DevicePlugins: true\n"}),
        ("1.28.4", {"/etc/sysconfig/kubelet": "KUBELET_EXTRA_ARGS=--feature-gates=DevicePlugins=true\n"}),
        ("1.26.9", {FLAGS_ENV: 'KUBELET_KUBEADM_ARGS="--container-runtime=remote"\n'}),
        ("1.15.9", {DEFAULT: f"KUBELET_EXTRA_ARGS=--node-labels={LABEL}=x\n"}),
        ("1.20.2", {DEFAULT: "KUBELET_EXTRA_ARGS=--node-labels=nvidia.com/gpu.present=true\n"}),
        ("1.28.0", {CONFIG: f"{HEAD}featureGates:\n  DevicePluginCDIDevices: true\n"}),
        ("1.36.0", {}),
    ],
    ids=["known still", "not locked yet", "a comment", "another key", "a file that the unit does not read",
         "a flag that is known still", "a label before 1.16",
         "a label of its own", "a gate that is there", "nothing"],
)  # fmt: skip
def test_a_kubelet_that_starts_is_left_alone(version: str, files: Mapping[str, str]) -> None:
    host = node(version, {PACKAGED: KUBEADM, **files}, runs=True)
    assert kubelet_outcomes(host, Spec()) == []
    (kept,) = kubelet_outcomes(host, ASKED)
    assert isinstance(kept, Kept)
    assert kept.text == f"kubelet {version} is told nothing that it does not know"


DEAD = {PACKAGED: KUBEADM, CONFIG: f"{HEAD}featureGates:\n  DevicePlugins: true\n"}


def commands(found: Step) -> list[tuple[str, ...]]:
    return [one.argv for one in found.actions if isinstance(one, Run)]


def test_a_kubelet_that_is_down_is_started_and_asked_for_its_health() -> None:
    found = step(node("1.28.4", DEAD))
    restart, verify = commands(found)
    assert restart == ("sh", "-s", "--", "kubelet.service")
    assert verify[3:] == ("kubelet.service", "90", "10248", "-", "-", "-")
    assert found.undo == ()
    assert not found.for_undo.restarts


def test_one_that_ends_over_and_over_is_down_also_where_it_was_seen_to_run() -> None:
    seen = node("1.28.4", DEAD, runs=True)
    again = replace(seen.services["kubelet.service"], restarts=7)
    found, down = (step(replace(h, services={"kubelet.service": again})) for h in (seen, node("1.28.4", DEAD)))
    assert found == down
    assert commands(found)[0] == ("sh", "-s", "--", "kubelet.service")


def test_one_that_is_down_for_another_reason_is_not_said_to_be_well() -> None:
    (kept,) = kubelet_outcomes(node("1.28.4", {PACKAGED: KUBEADM}), ASKED)
    assert isinstance(kept, Kept)
    assert kept.beware
    assert kept.text.endswith("journalctl -b -u kubelet.service shows its last words")
    assert kubelet_outcomes(node("1.28.4", {PACKAGED: KUBEADM}), PLAIN) == []


def test_one_that_runs_is_restarted_only_where_it_was_asked_for() -> None:
    host = node("1.28.4", DEAD, runs=True)
    assert commands(step(host)) == []
    assert "written only: the kubelet that runs was started before" in step(host).title
    found = step(host, ASKED)
    assert commands(found)[-1][3:] == ("kubelet.service", "90", "10248", *ASKED_AS, "/var/lib/kubelet/device-plugins")
    assert [one.argv for one in found.undo if isinstance(one, Run)] == commands(found)


def test_the_port_of_its_health_is_read_from_its_files() -> None:
    files = {**DEAD, CONFIG: f"{DEAD[CONFIG]}healthzPort: 11248\n"}
    assert commands(step(node("1.28.4", files)))[-1][5] == "11248"


@pytest.mark.parametrize(
    ("line", "port"),
    [
        ("healthzBindAddress: 10.0.0.5", "0"),
        ("healthzBindAddress: 0.0.0.0", "10248"),
        ('healthzBindAddress: "::"', "10248"),
    ],
    ids=["one address", "all of them", "all of IPv6"],
)
def test_one_that_answers_at_another_address_is_not_asked(line: str, port: str) -> None:
    files = {PACKAGED: KUBEADM, CONFIG: f"{HEAD}{line}\nfeatureGates:\n  DevicePlugins: true\n"}
    assert commands(step(node("1.28.4", files)))[-1][5] == port


def test_a_drop_in_is_read_again_before_the_restart() -> None:
    text = f'{KUBEADM}Environment="KUBELET_EXTRA_ARGS=--feature-gates=DevicePlugins=true"\n'
    found = step(node("1.28.4", {DROP_IN: text}))
    assert commands(found)[0] == ("systemctl", "daemon-reload")
    assert [one.argv for one in found.undo if isinstance(one, Run)] == [("systemctl", "daemon-reload")]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"init": "chroot"}, "an image is being built"),
        ({"init": "openrc"}, "nothing here restarts kubelet"),
        ({"services": {"kubelet.service": ServiceFacts("loaded", "inactive", "dead", "disabled")}}, "is switched off"),
        ({"joined": False}, "it has not joined a cluster"),
    ],
    ids=["an image", "no systemd", "switched off", "not in a cluster"],
)
def test_where_nothing_is_to_be_started_the_file_is_written_only(change: dict[str, object], says: str) -> None:
    host = node("1.28.4", DEAD, joined=change.pop("joined", True) is True)
    found = step(replace(host, **change))  # type: ignore[arg-type]
    assert commands(found) == []
    assert f"written only: {says}" in found.title or says in found.title


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({CONFIG: "featureGates:\n  DevicePlugins: true\n  DevicePlugins: true"}, "3:3: key 'DevicePlugins' stands"),
        ({CONFIG: "x: &g {DevicePlugins: true}\nfeatureGates: *g\n"}, "an alias of a list or mapping"),
        ({CONFIG: "featureGates:\n\tDevicePlugins: true\n"}, "found character"),
        ({CONFIG: "featureGates:\n  DevicePlugins: true\n# \udcff\n"}, "3:3: this byte is not UTF-8"),
        ({CONFIG: "featureGates:\n  DevicePlugins: true\n" + "x: " + "y" * 40000}, "over 32768 characters"),
        ({DEFAULT: 'KUBELET_EXTRA_ARGS=--feature-gates="DevicePlugins=true"\n'}, "has a value in quotes of its own"),
        ({DEFAULT: "KUBELET_EXTRA_ARGS=--feature-gates=DevicePlugins=true,$MORE\n"}, "that gpunode does not edit"),
        ({DEFAULT: f"KUBELET_EXTRA_ARGS=--node-labels={LABEL}=x,$MORE\n"}, "--node-labels is spelled in a way"),
        ({DEFAULT: f'K=--node-labels="{LABEL}=x"\n'}, "--node-labels has a value in quotes of its own"),
        ({DEFAULT: "K=" + "--feature-gates=DevicePlugins=true " * 400}, "400 flags, which no kubelet has"),
        ({DEFAULT: "K=" + "--feature-gates=DevicePlugins=true " * 100}, "more than 32 of them"),
        ({PACKAGED: KUBEADM + "ExecStart=/kubelet --feature-gates=DevicePlugins=true\n"}, "belongs to a package"),
    ],
    ids=["a key twice", "an alias", "a tab", "not UTF-8", "huge", "quotes", "a variable", "a label and a variable",
         "a label in quotes", "hundreds of flags",
         "a hundred times", "a package's unit"],
)  # fmt: skip
def test_what_is_not_understood_is_not_touched(files: Mapping[str, str], says: str) -> None:
    host = node("1.28.4", {PACKAGED: KUBEADM, **files})
    (kept,) = kubelet_outcomes(host, ASKED)
    assert isinstance(kept, Kept)
    assert kept.refused
    assert says in kept.text
    (kept,) = kubelet_outcomes(host, Spec())
    assert isinstance(kept, Kept)
    assert (kept.refused, kept.beware) == (False, True)


def test_a_file_that_cannot_be_read_is_not_guessed_at() -> None:
    host = node("1.28.4", {PACKAGED: KUBEADM})
    unread = replace(host, files={**host.files, CONFIG: FileFacts(CONFIG, unread="it belongs to uid 1000")})
    (kept,) = kubelet_outcomes(unread, ASKED)
    assert isinstance(kept, Kept)
    assert f"{CONFIG} cannot be read: it belongs to uid 1000" in kept.text


def test_a_gate_that_no_file_has_is_named_with_the_way_to_it() -> None:
    (kept,) = kubelet_outcomes(node("1.28.4", {PACKAGED: KUBEADM}, gates={"DevicePlugins": True}), ASKED)
    assert isinstance(kept, Kept)
    assert kept.text == "kubelet 1.28.4 does not start with DevicePlugins, and no file that gpunode edits has it"
    assert "systemctl cat kubelet.service" in str(kept.remedy.parts)


def test_what_k0s_writes_anew_is_left_and_the_worker_profile_is_named() -> None:
    """The file is written from the cluster's configuration at every start of k0s."""
    own = "/var/lib/k0s/kubelet-config.yaml"
    told = KubeletSettings(config=own)
    files = {own: f"{HEAD}featureGates:\n  CPUManager: true\n"}
    host = node("1.33.6", files, distribution="k0s", settings=told, gates={"CPUManager": True})
    (kept,) = kubelet_outcomes(host, ASKED)
    assert isinstance(kept, Kept)
    assert kept.text == "k0s 1.33.6 does not start with CPUManager, and no file that gpunode edits has it"
    assert "the worker profile in the cluster's k0s configuration" in str(kept.remedy.parts)


@pytest.mark.parametrize("name", ["k3s", "rke2"])
def test_the_drop_ins_of_people_are_edited_and_the_distributions_own_is_left(name: str) -> None:
    directory = f"/var/lib/rancher/{name}/agent/etc/kubelet.conf.d"
    gate = f"{HEAD}featureGates:\n  CPUManager: true\n"
    files = {f"{directory}/00-{name}-defaults.conf": gate, f"{directory}/50-site.conf": gate}
    host = node("1.33.6", files, distribution=name, settings=KubeletSettings(config_dir=directory))
    found = step(host)
    assert written(found) == {f"{directory}/50-site.conf": HEAD}
    assert f"restart of {name}-agent.service" in found.title


def test_the_unit_of_microk8s_kubelet_is_started() -> None:
    host = node("1.28.0", {MICROK8S: f"{OLD}\n"}, distribution="microk8s")
    assert "restart of snap.microk8s.daemon-kubelite.service" in step(host).title


@pytest.mark.parametrize(
    ("slug", "order"),
    [("ubuntu2404-k3s-old-gate-l4", ["kubelet.gates", "k3s.default"]),
     ("ubuntu2204-kubelet133-old-gate-l4", ["containerd.default", "kubelet.gates"])],
    ids=["k3s, which has both inside", "kubeadm"],
)  # fmt: skip
def test_an_engine_whose_unit_has_the_kubelet_inside_is_started_without_what_ends_it(
    slug: str, order: list[str]
) -> None:
    facts = (Path(__file__).parents[3] / "examples" / "hosts" / slug / "facts.txt").read_bytes()
    plan = make_plan(assemble(facts, slug), Spec(), load_catalog())
    assert [one.id for one in plan.steps if one.id in order] == order


OLD_DROP_IN = KUBEADM.replace(f"EnvironmentFile=-{DEFAULT}\n", "")
OWN = "/etc/systemd/system/kubelet.service.d/90-gpunode.conf"
BOTH = "--feature-gates=Accelerators=true,DevicePlugins=true"


@pytest.mark.parametrize(
    ("version", "files", "after"),
    [
        ("1.8.15", {DROP_IN: OLD_DROP_IN}, {OWN: f'[Service]\nEnvironment="KUBELET_EXTRA_ARGS={BOTH}"\n'}),
        ("1.9.11", {DROP_IN: KUBEADM}, {DEFAULT: f"KUBELET_EXTRA_ARGS={BOTH}\n"}),
        ("1.9.11", {DROP_IN: KUBEADM, DEFAULT: "KUBELET_EXTRA_ARGS=--node-ip=10.0.0.1\n"},
         {DEFAULT: f"KUBELET_EXTRA_ARGS={BOTH} --node-ip=10.0.0.1\n"}),
        ("1.9.11", {DROP_IN: KUBEADM, DEFAULT: 'KUBELET_EXTRA_ARGS=""\n'}, {DEFAULT: f'KUBELET_EXTRA_ARGS="{BOTH}"\n'}),
        ("1.9.11", {DROP_IN: KUBEADM, DEFAULT: "KUBELET_EXTRA_ARGS=--feature-gates=A=true,DevicePlugins=false\n"},
         {DEFAULT: "KUBELET_EXTRA_ARGS=--feature-gates=A=true,Accelerators=true,DevicePlugins=true\n"}),
        ("1.10.13", {DROP_IN: f'{OLD_DROP_IN}Environment="KUBELET_EXTRA_ARGS=--fail-swap-on=false"\n'},
         {DROP_IN: f'{OLD_DROP_IN}Environment="KUBELET_EXTRA_ARGS=--feature-gates=Accelerators=true '
                   '--fail-swap-on=false"\n'}),
        ("1.11.10", {DROP_IN: KUBEADM}, {DEFAULT: "KUBELET_EXTRA_ARGS=--feature-gates=Accelerators=true\n"}),
    ],
    ids=["1.8, a drop-in of our own", "1.9, a new environment file", "1.9, before other flags", "1.9, in quotes",
         "1.9, among other gates", "1.10, in a drop-in's variable", "1.11"],
)  # fmt: skip
def test_an_old_kubelet_gets_the_gates_that_gpus_need(
    version: str, files: Mapping[str, str], after: Mapping[str, str]
) -> None:
    host = node(version, files, runs=True, docker=True)
    found = step(host, ASKED)
    assert written(found) == after
    assert "alpha.kubernetes.io/nvidia-gpu" in found.why
    assert commands(found)[-1][9:] == tuple(w for w in ("Accelerators=true", "DevicePlugins=true") if w in found.title)
    assert found.for_undo.restarts == "kubelet.service"
    assert kubelet_outcomes(host, Spec()) == []  # only where it was asked for


@pytest.mark.parametrize("version", ["1.12.0", "1.20.2", "1.36.1"])
def test_no_newer_kubelet_gets_a_gate(version: str) -> None:
    (kept,) = kubelet_outcomes(node(version, {DROP_IN: KUBEADM}, runs=True, docker=True), ASKED)
    assert isinstance(kept, Kept)


@pytest.mark.parametrize(
    ("docker", "runtime", "says"),
    [(False, None, "no docker was found"), (True, "remote", "this kubelet has --container-runtime=remote")],
)
def test_accelerators_is_for_docker_alone(docker: bool, runtime: str | None, says: str) -> None:
    host = node(
        "1.9.11", {DROP_IN: KUBEADM}, runs=True, docker=docker, settings=KubeletSettings(container_runtime=runtime)
    )
    found = kubelet_outcomes(host, ASKED)
    assert [says in one.text for one in found if isinstance(one, Kept)] == [True]
    assert written(step(host, ASKED)) == {DEFAULT: "KUBELET_EXTRA_ARGS=--feature-gates=DevicePlugins=true\n"}


def test_a_unit_that_takes_no_flags_is_named() -> None:
    (kept,) = kubelet_outcomes(node("1.10.0", {DROP_IN: "[Service]\nExecStart=/usr/bin/kubelet\n"}, docker=True), ASKED)
    assert isinstance(kept, Kept)
    assert "no file of its unit takes flags from people" in kept.text


def test_a_static_cpu_manager_needs_pass_device_specs() -> None:
    host = node("1.31.4", {PACKAGED: KUBEADM}, runs=True, settings=KubeletSettings(config=CONFIG, cpu_manager="static"))
    texts = [one.text for one in kubelet_outcomes(host, ASKED) if isinstance(one, Kept)]
    assert "passDeviceSpecs: true" in texts[1]
    assert kubelet_outcomes(host, Spec()) == []


def test_without_a_kubelet_nothing_is_planned() -> None:
    host = node("1.31.4", {})
    none = replace(host, kubernetes=replace(host.kubernetes, kubelet=False, joined=False, version=None))
    assert kubelet_outcomes(none, Spec()) == []
    (kept,) = kubelet_outcomes(none, ASKED)
    assert isinstance(kept, Kept)
    assert kept.text == "no kubelet was found"
