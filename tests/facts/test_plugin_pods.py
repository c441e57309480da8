"""Pods of the device plugin as the probe sees them: its ConfigMaps, one that waits, devices of pods that are gone."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from gpunode.facts.kubernetes import kubernetes_of
from gpunode.facts.plugin_configs import parse_configs
from gpunode.facts.wire import Section, Sections
from gpunode.model.kubernetes import UNNAMED, DevicePlugins, PluginConfig, SharedResource
from tests.facts.test_kubernetes import CONTAINER, FILES, KUBECTL, MADE, POD, STATE, TOOLS, UID, machine, probed, shell

__all__ = ["shell"]
VOLUME = f"{STATE}/pods/{UID}/volumes/kubernetes.io~configmap/available-configs"
SHARED = """# for the small ones
version: v1
flags:
  # of the chart
  migStrategy: "single"
  plugin:
    passDeviceSpecs: true
    migStrategy: none
resources:
  gpus: [{pattern: hunter2}]
sharing:
  timeSlicing:
    resources:
    - name: nvidia.com/gpu
      replicas: 4
"""
READ = PluginConfig("available-configs/small", "v1", "single", (SharedResource("nvidia.com/gpu", 4),))
RUN = f"run/containerd/io.containerd.runtime.v2.task/k8s.io/{CONTAINER}/config.json"
GONE = "0b0b0b0b-0000-4000-8000-00000000000b"


def mounted(root: Path, **texts: str) -> Path:
    """A node with this ConfigMap, as the kubelet mounts it: open to all, behind a directory that is not."""
    node = machine(root)
    data = node / VOLUME / "..2026_11_23_20_00_00.1"
    data.mkdir(parents=True)
    (data.parent / "..data").symlink_to(data.name)
    for key, text in texts.items():
        (data / key).write_text(text)
        (data.parent / key).symlink_to(f"..data/{key}")
    data.parent.chmod(0o777)
    (node / STATE / "pods" / UID).chmod(0o750)
    return node


def seen(root: Path, shell: tuple[str, ...] = ("sh",)) -> DevicePlugins:
    plugins = probed(root, shell).kubernetes.device_plugins
    assert plugins
    return plugins


@pytest.mark.parametrize(
    ("sharing", "bare"),
    [
        ("timeSlicing: {resources: []}", ("timeSlicing",)),
        ("timeSlicing: {renameByDefault: true}", ("timeSlicing",)),
        ("mps: {}", ("mps",)),
        ("mps: {resources: [{name: nvidia.com/gpu, replicas: 2}]}", ()),
        ("timeSlicing: {resources: }", ("timeSlicing",)),
        ("timeSlicing:", ("timeSlicing",)),
        ("mps:", ()),
    ],
)
def test_sharing_without_a_resource_is_what_the_plugin_refuses(sharing: str, bare: tuple[str, ...]) -> None:
    """ "no resources specified" (api/config/v1/replicas.go)."""
    lines = ["plugin-configs=read", "config-of=a/config.yaml", "sharing=version: v1", "sharing=sharing:"]
    (config,) = parse_configs([*lines, f"sharing=  {sharing}"]) or ()
    assert (config.bare, config.unread) == (bare, None)


SLICING = "sharing=  timeSlicing: {{{}resources: [{{name: {}, replicas: {}}}]}}"


@pytest.mark.parametrize(
    ("flags", "name", "replicas", "taken", "odd"),
    [
        ("", "gpu", "4", SharedResource("nvidia.com/gpu", 4), ()),
        ("", "gpu", "'4'", SharedResource("nvidia.com/gpu", None), ()),
        ("", "nvidia.com/GPU", "4", SharedResource(UNNAMED, 4), ()),
        ("", "5", "4", SharedResource(UNNAMED, 4), ()),
        ("", "!!str [gpu]", "4", SharedResource(UNNAMED, 4), ()),
        ("failRequestsGreaterThanOne: maybe, ", "gpu", "4", SharedResource("nvidia.com/gpu", 4),
         ("timeSlicing.failRequestsGreaterThanOne",)),
        ("renameByDefault: 'y', failRequestsGreaterThanOne: y, ", "gpu", "4",
         SharedResource("nvidia.com/gpu", 4, renamed=True), ("timeSlicing.renameByDefault",)),
        ("renameByDefault: yes, failRequestsGreaterThanOne: , ", "gpu", "4",
         SharedResource("nvidia.com/gpu", 4, renamed=True), ()),
    ],
    ids=["well", "a number in quotes", "capitals", "a number for a name", "a list for a name", "a word for a flag",
         "a text for a flag, and a flag of Go's", "YAML 1.1"],
)  # fmt: skip
def test_of_what_is_shared_the_types_are_those_of_the_plugin(
    flags: str, name: str, replicas: str, taken: SharedResource, odd: tuple[str, ...]
) -> None:
    """Its reader puts no text into a number or a flag (api/config/v1/replicas.go)."""
    lines = ["plugin-configs=read", "config-of=a/config.yaml", "sharing=version: v1", "sharing=sharing:"]
    (config,) = parse_configs([*lines, SLICING.format(flags, name, replicas)]) or ()
    assert (config.time_slicing, config.odd_flags, config.unread) == ((taken,), odd, None)


def test_of_a_config_map_what_it_says_of_sharing_is_taken(shell: tuple[str, ...], tmp_path: Path) -> None:
    script = "#!/bin/sh\nexport X=hunter2\nexec nvidia-device-plugin\n"
    assert seen(mounted(tmp_path, small=SHARED, entrypoint=script), shell).configs == (READ,)


def test_of_what_is_shared_the_name_is_whole_and_may_change(tmp_path: Path) -> None:
    """The plugin puts its prefix before a name that has none, and knows one new name, of renameByDefault."""
    text = SHARED.replace("name: nvidia.com/gpu", "name: gpu\n      rename: team-gpu")
    renamed = text.replace("    resources:\n    -", "    renameByDefault: true\n    resources:\n    -")
    configs = seen(mounted(tmp_path, a=text, b=renamed)).configs or ()
    assert [config.time_slicing for config in configs] == [
        (SharedResource("nvidia.com/gpu", 4),),
        (SharedResource("nvidia.com/gpu", 4, renamed=True),),
    ]


ODD = "not written in lines"


@pytest.mark.parametrize(
    ("text", "why"),
    [('{"version": "v1", "flags": {"migStrategy": "none"}}\n', ODD), ("version: v1\nflags: {migStrategy: x}\n", ODD),
     ("version: v1\nsharing: [\n", "expected"), ("version: v1\nsharing: &a [*a]\n", "alias"),
     ("version: v1\nsharing:\n  mps: {resources: 3}\n", "resources is no list"),
     ("version: v1\nsharing:\n  x: " + "y" * 2000 + "\n", ODD)],
    ids=["JSON", "flags in one line", "an open list", "an alias", "another form", "a long line"],
)  # fmt: skip
def test_what_cannot_be_taken_line_by_line_is_not_known(text: str, why: str, tmp_path: Path) -> None:
    configs = seen(mounted(tmp_path, small=text)).configs
    assert configs
    assert why in (configs[0].unread or "")


def test_a_configuration_that_is_too_large_is_not_taken(tmp_path: Path) -> None:
    assert seen(mounted(tmp_path, small=SHARED + "#" * 70_000)).configs == ()


def test_a_pod_whose_directory_is_open_to_others_is_not_believed(shell: tuple[str, ...], tmp_path: Path) -> None:
    root = mounted(tmp_path, small=SHARED)
    (root / STATE / "pods" / UID).chmod(0o755)
    assert seen(root, shell).configs is None
    (root / STATE / "pods" / UID).chmod(0o750)
    (root / STATE / "pods").chmod(0o777)
    assert seen(root, shell).configs is None


def test_the_mig_strategy_of_a_plugin_that_runs_is_among_its_settings(tmp_path: Path) -> None:
    root = machine(tmp_path, {**FILES, RUN: MADE.replace('"env":[', '"env":["MIG_STRATEGY=single",')})
    assert (seen(root).options or {})["MIG_STRATEGY"] == "single"


@pytest.mark.parametrize(("minutes", "late"), [(0, False), (30, True)])
def test_a_pod_without_a_container_waits(shell: tuple[str, ...], minutes: int, late: bool, tmp_path: Path) -> None:
    kept = {name: text for name, text in FILES.items() if not name.startswith(("var/log/pods", "proc/4711"))}
    root = machine(tmp_path, {**kept, "var/log/pods/x/y": ""})
    folder = root / "var/log/pods" / f"{POD}_{UID}"
    folder.mkdir()
    now = folder.stat().st_mtime
    os.utime(folder, (now - 60 * minutes, now - 60 * minutes))
    assert dict(seen(root, shell).waits) == {POD: late}


def entry(uid: str) -> str:
    return (
        f'{{"PodUID":"{uid}","ContainerName":"c","ResourceName":"r","DeviceIDs":{{"-1":["x","y"]}},"AllocResp":"aA=="}}'
    )


def node_with(root: Path, *uids: str, at: Mapping[str, int], devices: str = '{"nvidia.com/gpu":["a","b"]}') -> Path:
    """A node whose checkpoint has these pods, with the seconds at which its files came about."""
    entries = ",".join(map(entry, uids))
    path = f"{STATE}/device-plugins/kubelet_internal_checkpoint"
    text = f'{{"Data":{{"PodDeviceEntries":[{entries}],"RegisteredDevices":{devices}}},"Checksum":1}}'
    node = machine(root, {**FILES, path: text, f"{STATE}/pods/{UID}/plugins/x": ""})
    places = {"checkpoint": path, "newest": f"{STATE}/pods/{UID}/plugins", "pods": f"{STATE}/pods"}
    for name, second in at.items():
        os.utime(node / places[name], (1_700_000_000 + second,) * 2)
    return node


IN_ORDER = {"checkpoint": 0, "pods": 1, "newest": 1}


@pytest.mark.parametrize(
    ("uids", "at", "known", "ghosts", "kept"),
    [
        ((UID, UID), IN_ORDER, 1, (), True),
        ((UID, GONE), IN_ORDER, 2, (GONE,), True),
        ((UID, GONE), {**IN_ORDER, "pods": 60}, 2, (GONE,), False),
        ((UID, GONE), {**IN_ORDER, "checkpoint": 60}, 2, (GONE,), False),
        ((GONE,), IN_ORDER, 1, (GONE,), False),
        ((), IN_ORDER, 0, (), False),
        (("../../etc", "a b", "x" * 65), IN_ORDER, 0, (), False),
        (tuple(f"gone-{n}" for n in range(600)), IN_ORDER, 512, tuple(f"gone-{n}" for n in range(32)), False),
    ],
    ids=["all are there", "kept for the newest pod", "a pod went since", "written for another reason", "nobody came",
         "no pod", "no UIDs", "very many"],
)  # fmt: skip
def test_pods_that_are_gone_are_told_from_those_that_the_kubelet_keeps(
    uids: tuple[str, ...], at: Mapping[str, int], known: int, ghosts: tuple[str, ...], kept: bool, tmp_path: Path
) -> None:
    found = seen(node_with(tmp_path, *uids, at=at))
    assert (found.allocated, found.ghosts, found.kept) == (known, ghosts, kept)
    assert dict(found.registered or {}) == {"nvidia.com/gpu": ("a", "b")}


def test_every_shell_reads_the_same_checkpoint(shell: tuple[str, ...], tmp_path: Path) -> None:
    found = seen(node_with(tmp_path, UID, GONE, at=IN_ORDER, devices="null"), shell)
    assert (found.allocated, found.ghosts, found.kept, found.registered) == (2, (GONE,), True, {})


def test_of_a_checkpoint_that_ends_early_nothing_is_known(tmp_path: Path) -> None:
    root = node_with(tmp_path, UID, GONE, at={})
    path = root / STATE / "device-plugins/kubelet_internal_checkpoint"
    path.write_text(path.read_text().partition('"b"')[0])
    found = seen(root)
    assert (found.registered, found.allocated) == (None, None)


def test_of_the_nodes_images_those_of_nvidia_are_taken(shell: tuple[str, ...], tmp_path: Path) -> None:
    names = ("registry/secret-app:hunter2", "nvcr.io/nvidia/gpu-operator:v25.3.1", "m:5000/k8s/container-toolkit:v1")
    many = "\n".join(f"image={name}" for name in (*names, *(f"nvidia/x:{n}" for n in range(100)), "nvidia/a b"))
    tools = {**TOOLS, "kubectl": KUBECTL.replace("\nEND", f"\nimages=read\n{many}\nEND", 1)}
    node = probed(machine(tmp_path, tools=tools), shell).kubernetes.node
    assert node
    assert node.unschedulable
    assert (node.images or ())[:3] == (*names[1:], "nvidia/x:0")
    assert len(node.images or ()) == 64


@pytest.mark.parametrize(
    ("mark", "distribution"),
    [
        ("etc/eks/x", "eks"),
        ("etc/kubernetes/azure.json", "aks"),
        ("home/kubernetes/x", "gke"),
        ("etc/hosts", "kubeadm"),
    ],
)
def test_a_clouds_kubernetes_is_told_by_its_files(mark: str, distribution: str, tmp_path: Path) -> None:
    assert probed(machine(tmp_path, {**FILES, mark: ""})).kubernetes.distribution == distribution


@pytest.mark.parametrize(
    "text",
    ["config-of=a b/c\nsharing=version: v1", "config-of=a/b", "sharing=version: v1", "config-of=a/b\nsharing=- 1\nx"],
    ids=["no name", "no lines", "no file", "no mapping"],
)
def test_odd_lines_are_no_configuration(text: str) -> None:
    section = Section(f"plugins=/d\nplugin-configs=read\n{text}\n")
    plugins = kubernetes_of(Sections({"kubernetes": section})).device_plugins
    assert plugins
    assert [config for config in plugins.configs or () if config.unread is None] == []
    assert replace(plugins, configs=None).allocated is None


def test_a_recording_from_before_has_none_of_it() -> None:
    plugins = kubernetes_of(Sections({"kubernetes": Section("plugins=/d\nregistered={}\n")})).device_plugins
    assert plugins
    assert (plugins.configs, plugins.allocated, plugins.ghosts, dict(plugins.waits)) == (None, None, (), {})
    node = kubernetes_of(Sections({"node": Section("condition=Ready True\n")})).node
    assert node
    assert node.images is None
