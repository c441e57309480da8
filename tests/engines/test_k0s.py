"""k0s: the drop-in that it merges, or the admin's own containerd.toml; k0s itself was not run."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gpunode.engines.kubernetes.k0s import K0s, is_managed
from gpunode.errors import ConfigFileError, UnsupportedHost
from gpunode.model.action import PutFile, Run
from gpunode.model.spec import Spec
from gpunode.planner.engines.steps import runtime_steps
from tests.engines import rewritten, trees
from tests.engines.hosts import engine_facts

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found, unused-ignore]

PAIRS = trees.pairs(Path(__file__).parent / "k0s")
MAIN = "/etc/k0s/containerd.toml"
DIRECTORY = "/etc/k0s/containerd.d"
MANAGED = "# k0s_managed=true\nversion = 2\n"
PLUGINS = ("io.containerd.cri.v1.runtime", "io.containerd.grpc.v1.cri")


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_tree_before_and_after(pair: trees.Pair) -> None:
    rewritten.check(pair, "k0s")


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_merged_as_k0s_merges_nvidia_is_in_force(pair: trees.Pair) -> None:
    """Key by key, in the order of the names (RFC 7396); containerd.toml itself only where it is the admin's."""
    managed = is_managed(pair.after.get(MAIN, MANAGED))
    paths = sorted(p for p in pair.after if p.startswith(DIRECTORY)) if managed else [MAIN]
    merged: dict[str, object] = {}
    for path in paths:
        merge(merged, tomllib.loads(pair.after[path]))
    plugins = merged["plugins"]
    assert isinstance(plugins, dict)
    engine = next(plugins[name]["containerd"] for name in PLUGINS if "containerd" in plugins.get(name, {}))
    assert engine["runtimes"]["nvidia"]["options"]["BinaryName"] == "/usr/bin/nvidia-container-runtime"
    assert engine.get("default_runtime_name") == (None if pair.said.get("want") == "no" else "nvidia")
    assert pair.after.get(MAIN) == pair.before.get(MAIN) or not managed


def merge(into: dict[str, object], other: dict[str, object]) -> None:
    for key, value in other.items():
        old = into.get(key)
        if isinstance(value, dict) and isinstance(old, dict):
            merge(old, value)
        else:
            into[key] = value


@pytest.mark.parametrize(("embedded_in", "fits"), [("1.27.1+k0s.0", True), ("1.26.9+k0s.0", False), (None, True)])
def test_a_k0s_that_does_not_merge_is_refused(embedded_in: str | None, fits: bool) -> None:
    facts = engine_facts("k0s", "1.7.1", embedded_in=embedded_in)
    if fits:
        assert rewritten.rewrite(facts, {MAIN: MANAGED}).changed
        return
    with pytest.raises(UnsupportedHost, match="too old"):
        rewritten.rewrite(facts, {MAIN: MANAGED})


def test_a_drop_in_of_another_version_is_refused() -> None:
    tree = {MAIN: MANAGED, f"{DIRECTORY}/nvidia.toml": "version = 3\n"}
    with pytest.raises(ConfigFileError, match="is in version 3, and k0s writes version 2"):
        rewritten.rewrite(engine_facts("k0s", "1.7.27"), tree)


def test_the_candidate_is_read_by_k0s_own_containerd_and_its_unit_restarted() -> None:
    facts = engine_facts("k0s", "1.7.27", binary="/var/lib/k0s/bin/containerd")
    (step,), _ = runtime_steps(rewritten.host_of(facts, {MAIN: MANAGED}), Spec())
    _, put, restart, verify = step.actions
    assert step.title.startswith(f"{DIRECTORY}/nvidia.toml: + handler nvidia, default runc → nvidia; restart of k0s")
    assert isinstance(put, PutFile)
    assert put.validate is not None
    assert put.validate.argv == ("/var/lib/k0s/bin/containerd", "--config", "{candidate}", "config", "dump")
    assert isinstance(restart, Run)
    assert restart.description == "systemctl restart k0sworker.service"
    assert isinstance(verify, Run)
    assert verify.argv[3:6] == ("k0s", "/run/k0s/containerd.sock", "nvidia")


def test_a_file_that_k0s_does_not_manage_is_reported_and_validated_whole() -> None:
    facts = engine_facts("k0s", "1.7.27")
    result = rewritten.rewrite(facts, {MAIN: "version = 2\n"})
    assert result.main.path == MAIN
    assert "is not managed by k0s" in result.notes[0]
    validate = K0s().validate(facts, MAIN)
    assert validate is not None
    assert "{candidate}" in validate.argv


OF_VERSION_2 = """# containerd's GPU runtime, added by gpunode
version = 2

[plugins."io.containerd.grpc.v1.cri".containerd]
default_runtime_name = "nvidia"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia.options]
BinaryName = "/usr/bin/nvidia-container-runtime"
"""


def test_a_drop_in_of_an_earlier_gpunode_follows_k0s_to_version_3() -> None:
    facts = engine_facts("k0s", "2.1.9", embedded_in="1.36.0+k0s.0", effective_default="nvidia")
    tree = {MAIN: MANAGED.replace("2", "3"), f"{DIRECTORY}/nvidia.toml": OF_VERSION_2}
    found = rewritten.rewrite(facts, tree)
    after = found.main.after
    assert found.added == ("version 2 → 3",)
    assert (found.main.before, "added by gpunode" in after) == (OF_VERSION_2, True)
    assert tomllib.loads(after)["version"] == 3
    assert list(tomllib.loads(after)["plugins"]) == [PLUGINS[0]]
    assert not rewritten.rewrite(facts, {**tree, found.main.path: after}).changed


def test_a_drop_in_of_version_2_with_more_in_it_is_its_owners_to_convert() -> None:
    facts = engine_facts("k0s", "2.1.9", embedded_in="1.36.0+k0s.0")
    more = f"{OF_VERSION_2}[plugins.'io.containerd.grpc.v1.cri'.registry]\nconfig_path = '/etc/certs'\n"
    with pytest.raises(ConfigFileError, match="is in version 2, and k0s writes version 3"):
        rewritten.rewrite(facts, {MAIN: MANAGED.replace("2", "3"), f"{DIRECTORY}/nvidia.toml": more})


def test_a_k0s_that_exits_since_its_upgrade_gets_the_version_that_it_asks_for() -> None:
    """Its own file is from before the upgrade: it exits before it writes that anew."""
    facts = engine_facts("k0s", None, embedded_in="1.36.1+k0s.0", active=False, effective_default=None)
    found = rewritten.rewrite(facts, {MAIN: MANAGED, f"{DIRECTORY}/nvidia.toml": OF_VERSION_2})
    assert found.added[0] == "version 2 → 3"
    assert tomllib.loads(found.main.after)["version"] == 3
    running = engine_facts("k0s", "1.7.28", embedded_in="1.36.1+k0s.0", effective_default="nvidia")
    assert not rewritten.rewrite(running, {MAIN: MANAGED, f"{DIRECTORY}/nvidia.toml": OF_VERSION_2}).changed
