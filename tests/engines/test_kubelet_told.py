"""What a kubelet is told is read as setup reads it: what setup would take out is found, and nothing else."""

from __future__ import annotations

import pytest

from gpunode.catalog.feature_gates import first_refusal
from gpunode.catalog.kubelet_flags import gone_flag
from gpunode.engines.kubernetes.kubelet_places import places
from gpunode.engines.kubernetes.kubelet_told import MOST_FLAGS, told
from gpunode.facts.collect import collect
from gpunode.model.facts import HostFacts, RuntimeFacts
from gpunode.planner.engines.kubelet.refused import freed
from gpunode.transport.recorded import Recorded
from tests.checks.upgrades import well
from tests.golden_text import EXAMPLES
from tests.planner.engines.kubelets import CONFIG, DEFAULT, FLAGS_ENV, HEAD, node
from tests.recorded.kubelets import KUBELETS

RELEASES = [(1, minor) for minor in range(8, 39)]
K3S = "/etc/rancher/k3s/config.yaml"
TOLD = [
    well("1.9.0", {DEFAULT: "KUBELET_EXTRA_ARGS=--feature-gates=Accelerators=true,CPUManager=t --allow-privileged\n"}),
    well(
        "1.9.0",
        {FLAGS_ENV: 'KUBELET_KUBEADM_ARGS="--network-plugin cni --container-runtime=remote"\n# --cloud-config\n'},
    ),
    well("1.9.0", {CONFIG: f'{HEAD}featureGates: {{"NodeSwap": false, "DevicePlugins": true}}\nx: NodeSwap\n'}),
    node("1.9.0", {K3S: "kubelet-arg:\n- feature-gates=CPUManager=true,A=b\n- containerd=/x\n"}, distribution="k3s"),
    node("1.9.0", {K3S: "kubelet-arg+: --cloud-config=/x\n"}, distribution="k3s"),
]


def dead(host: HostFacts, release: tuple[int, int]) -> set[str]:
    known = told(host)
    gates = {one.name for one in known.gates if one.path and first_refusal(one.name, release, on=one.on)}
    gone = {one.name: gone_flag(one.name) for one in known.flags if one.path}
    return gates | {f"--{name}" for name, row in gone.items() if row and release >= row.since}


def taken(host: HostFacts, release: tuple[int, int]) -> set[str]:
    found = [freed(one.path, one.file.text or "", one.form, release) for one in places(host)]
    return {name for one in found for what in one.taken for name in what.what.split(", ")}


@pytest.mark.parametrize("host", TOLD, ids=["flags", "environment", "flow mapping", "kubelet-arg", "one word"])
def test_what_setup_takes_out_is_what_is_found(host: HostFacts) -> None:
    assert any(dead(host, release) for release in RELEASES)
    for release in RELEASES:
        assert dead(host, release) == taken(host, release), release


@pytest.mark.parametrize("slug", [one.slug for one in KUBELETS])
def test_what_setup_takes_out_of_a_recorded_node_is_what_is_found(slug: str) -> None:
    host = collect(Recorded((EXAMPLES / slug / "facts.txt").read_bytes(), slug))
    for release in RELEASES:
        assert dead(host, release) == taken(host, release), release


def test_each_has_its_line() -> None:
    text = f"{HEAD}featureGates:\n  # one\n  A: true\n  B: false\n"
    host = well(files={CONFIG: text, DEFAULT: "# x\n\nKUBELET_EXTRA_ARGS=--v=2 --feature-gates=C=true\n"})
    known = told(host)
    where = {one.name: one.where for one in (*known.gates, *known.flags)}
    assert (where["A"], where["B"], where["C"], where["v"]) == (
        f"{CONFIG}:5",
        f"{CONFIG}:6",
        f"{DEFAULT}:3",
        f"{DEFAULT}:3",
    )
    assert known.unknown == ()
    assert known.settings_known


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (("worker", "--kubelet-extra-args=--node-ip=10.0.0.1 --cloud-config=/x"), ["node-ip", "cloud-config"]),
        (("server", "--kubelet-arg", "cloud-config=/x"), ["cloud-config"]),
        (("server", "--kubelet-arg"), []),
        (("server", "--cloud-config=/x"), []),
    ],
    ids=["k0s", "k3s, two words", "nothing follows", "the distribution's own flag"],
)
def test_what_a_distributions_command_passes_on(words: tuple[str, ...], names: list[str]) -> None:
    engine = RuntimeFacts("k0s", "1.7.1", "", "k0sworker.service", "", embedded_in="1.33.1", distribution_flags=words)
    host = node("1.33.1", {}, distribution="k0s")
    known = told(type(host)(**{**vars(host), "runtimes": (engine,)}))
    assert [one.name for one in known.flags] == names


@pytest.mark.parametrize(
    ("text", "path", "says"),
    [
        ("--x=1 " * (MOST_FLAGS + 1), DEFAULT, f"{MOST_FLAGS + 1} flags, which no kubelet has"),
        ("featureGates:\n" + "".join(f"  G{n}: true\n" for n in range(4000)), CONFIG, "no kubelet's configuration"),
        ("a: 1\na: 2\n", CONFIG, "stands twice"),
        ("- a\n", CONFIG, "must hold one mapping"),
    ],
    ids=["thousands of flags", "a huge file", "a key twice", "no mapping"],
)
def test_what_no_kubelet_has_is_not_known(text: str, path: str, says: str) -> None:
    (why,) = told(well(files={path: text})).unknown
    assert why.startswith(path)
    assert says in why


@pytest.mark.parametrize(
    ("later", "gates"),
    [
        ("kubelet-arg:\n- max-pods=200\n", []),
        ("kubelet-arg+:\n- max-pods=200\n", ["CPUManager"]),
        ("debug: true\n", ["CPUManager"]),
    ],
    ids=["the last file counts", "a plus adds", "another key"],
)
def test_of_k3s_files_the_last_one_with_the_key_counts(later: str, gates: list[str]) -> None:
    files = {K3S: "kubelet-arg:\n- feature-gates=CPUManager=true\n", f"{K3S}.d/50-site.yaml": later}
    assert [one.name for one in told(node("1.33.7", files, distribution="k3s")).gates] == gates
