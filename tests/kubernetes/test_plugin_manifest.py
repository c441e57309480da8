"""The plugin's objects, of every release, as every API server whose schema is known takes them."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from gpunode.catalog.plugin_releases import PluginRelease
from gpunode.errors import UsageError
from gpunode.kubernetes.plugin_forms import cluster_of, form_notes, printed
from gpunode.kubernetes.plugin_pods import Cluster
from gpunode.kubernetes.plugin_spelling import SPELLINGS
from gpunode.kubernetes.plugin_version import chosen
from tests.kubernetes.plugins import MPS, NEWEST, RELEASES, SLICED, container, documents_of, plugin
from tests.kubernetes.schemas import RELEASES as SERVERS
from tests.kubernetes.schemas import faults

HERE = Cluster()


def manifest(
    set: list[str], configs: dict[str, str], release: PluginRelease = NEWEST, **cluster: str | None
) -> list[Any]:
    made = cluster_of(cluster.get("kubernetes"), cluster.get("runtime_class"))
    return documents_of(printed(plugin(release, set, **configs), "manifest", None, made))


PLUGINS: list[tuple[list[str], dict[str, str]]] = [
    ([], {}),
    (["mig-strategy=mixed", "device-list-strategy=envvar,volume-mounts"], {}),
    (["driver-root=/run/nvidia/driver", "device-list-strategy=cdi-annotations"], {}),
    ([], {"default": SLICED}),
    ([], {"default": MPS}),
    (["pass-device-specs=true"], {"a100": "flags: {migStrategy: single}", "t4": SLICED}),
    ([], {"a100": "flags: {migStrategy: single}", "t4": MPS}),
]


@cache
def printed_texts() -> Counter[str]:
    """Every manifest of every plugin and release in every spelling that it has, with RuntimeClass and without."""
    found: Counter[str] = Counter()
    for release in RELEASES:
        for set, configs in PLUGINS:
            if MPS in configs.values() and release.numbers < (0, 15):
                continue
            one = plugin(release, set, **configs)
            for spelling in ("config",) if one.grouped or one.settings.sharing else SPELLINGS:
                for runtime_class in (None, "nvidia"):
                    found[printed(one, "manifest", spelling, Cluster(runtime_class=runtime_class))] += 1
    return found


@cache
def printed_objects() -> list[tuple[str, Any]]:
    """Read back; each object once, since releases print many alike."""
    found: dict[str, tuple[str, Any]] = {}
    for text in printed_texts():
        for one in documents_of(text):
            found.setdefault(repr(one), (text.splitlines()[0], one))
    return list(found.values())


@pytest.mark.parametrize("server", SERVERS)
def test_a_server_takes_every_object_of_every_plugin(server: str) -> None:
    assert printed_texts().total() == 512
    for head, one in printed_objects():
        assert faults(one, server) == [], (head, one["kind"])


@pytest.mark.parametrize("server", SERVERS)
def test_what_is_printed_for_a_server_by_its_release_is_what_it_takes(server: str) -> None:
    for set, configs in PLUGINS:
        for one in manifest(set, configs, kubernetes=server, runtime_class="nvidia"):
            assert faults(one, server) == [], one["kind"]


def test_the_schemas_do_refuse() -> None:
    (read,) = manifest([], {})
    read["spec"]["template"]["spec"]["tolerationz"] = []
    assert faults(read, SERVERS[-1])


@pytest.mark.parametrize(
    ("set", "rights"),
    [
        ([], {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}),
        (["mig-strategy=single"], {"capabilities": {"add": ["SYS_ADMIN"]}}),
        (["device-list-strategy=volume-mounts"], {"capabilities": {"add": ["SYS_ADMIN"]}}),
        (["pass-device-specs=true"], {"privileged": True}),
        (["pass-device-specs=false"], {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}),
    ],
)
def test_the_plugin_gets_the_rights_that_it_needs(set: list[str], rights: object) -> None:
    assert container(manifest(set, {}))["securityContext"] == rights


@pytest.mark.parametrize(
    ("kubernetes", "daemonset", "runtime"),
    [
        ("1.10", "apps/v1", None),
        ("1.12", "apps/v1", "node.k8s.io/v1alpha1"),
        ("1.14", "apps/v1", "node.k8s.io/v1beta1"),
        ("1.19.3", "apps/v1", "node.k8s.io/v1beta1"),
        ("v1.20.0", "apps/v1", "node.k8s.io/v1"),
        (None, "apps/v1", "node.k8s.io/v1"),
    ],
)
def test_an_older_cluster_gets_the_api_of_its_time(kubernetes: str | None, daemonset: str, runtime: str | None) -> None:
    objects = manifest([], {}, kubernetes=kubernetes, runtime_class="nvidia" if runtime else None)
    assert [one["apiVersion"] for one in objects] == [runtime, daemonset][not runtime :]
    pod = objects[-1]["spec"]["template"]
    old = kubernetes == "1.10"
    assert ("annotations" in pod["metadata"]) is old
    assert ("priorityClassName" in pod["spec"]) is not old


@pytest.mark.parametrize("kubernetes", ["1.9", "1.8", "0.1", "latest", "", "1.x"])
def test_a_cluster_before_the_plugins_protocol_is_refused(kubernetes: str) -> None:
    with pytest.raises(UsageError):
        cluster_of(kubernetes, None)


@pytest.mark.parametrize("name", ["nvidia", "gpu.nvidia.com", "a" * 63, "a-1.b"])
def test_a_runtime_class_is_named_as_a_domain(name: str) -> None:
    assert cluster_of(None, name).runtime_class == name
    for one in manifest([], {}, runtime_class=name):
        assert faults(one, SERVERS[-1]) == []


@pytest.mark.parametrize("name", ["", "-a", "a-", "a..b", "A", "a_b", ".a", "a.", "a" * 64, "a." * 130 + "a", "a\n"])
def test_what_is_no_name_of_a_runtime_class_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="is no name of an object"):
        cluster_of(None, name)


def test_no_runtime_class_before_there_was_one() -> None:
    with pytest.raises(UsageError, match=r"1\.11 has no RuntimeClass"):
        manifest([], {}, kubernetes="1.11", runtime_class="nvidia")


def test_the_runtime_class_is_made_and_used_by_each_pod() -> None:
    objects = manifest([], {"default": MPS}, runtime_class="gpu")
    assert (objects[0]["kind"], objects[0]["metadata"]["name"], objects[0]["handler"]) == (
        "RuntimeClass",
        "gpu",
        "nvidia",
    )
    pods = [one["spec"]["template"]["spec"] for one in objects if one["kind"] == "DaemonSet"]
    assert [pod["runtimeClassName"] for pod in pods] == ["gpu", "gpu"]


def test_each_group_of_nodes_has_a_key_of_the_config_map() -> None:
    objects = manifest([], {"a100": "flags: {migStrategy: single}", "t4": SLICED})
    (data,) = [one["data"] for one in objects if one["kind"] == "ConfigMap"]
    assert list(data) == ["a100", "t4"]
    (pod,) = [one["spec"]["template"]["spec"] for one in objects if one["kind"] == "DaemonSet"]
    managers = [*pod["initContainers"], *(c for c in pod["containers"] if "command" in c)]
    for manager in managers:
        env = {one["name"]: one.get("value") for one in manager["env"]}
        assert (env["DEFAULT_CONFIG"], env["NODE_LABEL"]) == ("a100", "nvidia.com/device-plugin.config")
    notes = list(form_notes(plugin(a100="flags: {migStrategy: single}", t4=SLICED), "manifest"))
    assert any("one without it has a100" in note for note in notes)


def test_a_label_that_changes_reaches_the_plugin_and_the_daemon_of_mps() -> None:
    """config-manager compares the first words of command lines, and has to be as privileged as what it signals."""
    objects = manifest(["pass-device-specs=true"], {"whole": "", "mps": MPS})
    pods = [one["spec"]["template"]["spec"] for one in objects if one["kind"] == "DaemonSet"]
    for pod, process in zip(pods, ("nvidia-device-plugin", "mps-control-daemon"), strict=True):
        sidecar, main = pod["containers"]
        env = {one["name"]: one.get("value") for one in sidecar["env"]}
        assert (env["ONESHOT"], env["SEND_SIGNAL"], env["SIGNAL"]) == ("false", "true", "1")
        assert env["PROCESS_TO_SIGNAL"] == process == main.get("command", ["nvidia-device-plugin"])[0]
        assert sidecar["securityContext"] == main["securityContext"] == {"privileged": True}
        assert pod.get("hostPID", False) is not pod.get("shareProcessNamespace", False)  # a server refuses both


def test_before_a_release_that_can_signal_the_daemon_of_mps_a_person_restarts_it() -> None:
    groups = {"whole": "", "mps": MPS}
    old = chosen("0.19", RELEASES)
    pod = manifest([], groups, old)[-1]["spec"]["template"]["spec"]
    assert [one["name"] for one in pod["containers"]] == ["mps-control-daemon-ctr"]
    restart = "delete pod -l name=nvidia-device-plugin-mps-control-daemon --field-selector spec.nodeName=NODE"
    for release, said in ((old, True), (NEWEST, False)):
        assert any(restart in note for note in form_notes(plugin(release, **groups), "manifest")) is said


def test_the_guide_restarts_each_daemonset_that_reads_the_config_map() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "how-to" / "kubernetes.md").read_text(encoding="utf-8")
    names = [one["metadata"]["name"] for one in manifest([], {"default": MPS}) if one["kind"] == "DaemonSet"]
    assert len(names) == 2
    for name in names:
        assert f"`kubectl -n kube-system rollout restart daemonset {name}`" in guide


def test_every_mount_has_its_volume() -> None:
    for set, configs in PLUGINS:
        for one in manifest(set, configs):
            if one["kind"] == "DaemonSet":
                pod = one["spec"]["template"]["spec"]
                volumes = [volume["name"] for volume in pod["volumes"]]
                used = {
                    m["name"] for c in (*pod["containers"], *pod.get("initContainers", ())) for m in c["volumeMounts"]
                }
                assert sorted(volumes) == sorted(used)


def test_releases_are_in_the_order_of_their_versions() -> None:
    assert [one.numbers for one in RELEASES] == sorted(one.numbers for one in RELEASES)


@pytest.mark.parametrize(
    ("text", "tag"),
    [(None, NEWEST.tag), ("v0.17.1", "v0.17.1"), ("0.17.1", "v0.17.1"), ("0.17", "v0.17.4"), ("v0.14", "v0.14.5")],
)
def test_a_release_may_be_named_by_its_first_two_numbers(text: str | None, tag: str) -> None:
    assert chosen(text, RELEASES).tag == tag


@pytest.mark.parametrize("text", ["", "v", "0", "latest", "0.13.0", "v0.20.00", "0.20.0-rc.1", "x" * 9999, "\x1b[2J"])
def test_what_is_no_known_release_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not known"):
        chosen(text, RELEASES)
