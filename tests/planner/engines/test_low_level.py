"""The low-level runtime below NVIDIA's, which must be the one that made CRI-O's containers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.facts.collect import assemble
from gpunode.facts.recordings import load_recording
from gpunode.model.action import PutFile
from gpunode.model.facts import HostFacts
from gpunode.model.files import FileFacts
from gpunode.model.plan import Plan
from gpunode.model.spec import TOOLKIT_CONFIG, RuntimeSpec, Spec, ToolkitConfig
from gpunode.planner.plan import make_plan
from tests.engines.hosts import engine_facts

RECORDING = Path(__file__).parents[3] / "examples/hosts/el9-crio-a100"
CRUN = "/usr/libexec/crio/crun"
OURS = "/etc/crio/crio.conf.d/99-nvidia.toml"
RUNTIME = Spec(only=("runtime",))
OF_OLD = '[nvidia-container-runtime]\nruntimes = ["docker-runc", "runc"]\n'
BOTH = ("/usr/bin/runc", "/usr/bin/crun")


def node(crun: str = CRUN, in_path: tuple[str, ...] = (), config: str | None = None) -> HostFacts:
    """CRI-O of its own packages, with crun as its default."""
    host = assemble(load_recording(RECORDING), "node")
    engine, files = host.runtimes[0], dict(host.files)
    for path in engine.imports:
        files[path] = FileFacts(path, (files[path].text or "").replace(CRUN, crun))
    if config is not None:
        files[TOOLKIT_CONFIG] = FileFacts(TOOLKIT_CONFIG, config)
    running = replace(engine, merged_config=(engine.merged_config or "").replace(CRUN, crun))
    return replace(host, runtimes=(running,), files=files, toolkit=replace(host.toolkit, low_level=in_path))


def by_nvidia(host: HostFacts) -> HostFacts:
    """The same after setup: CRI-O runs with nvidia as its default."""
    engine = host.runtimes[0]
    text = (
        '[crio.runtime]\ndefault_runtime = "nvidia"\n[crio.runtime.runtimes.nvidia]\nruntime_type = "oci"\n'
        'runtime_path = "/usr/bin/nvidia-container-runtime"\nruntime_root = "/run/crun"\n'
    )
    running = replace(
        engine, effective_default="nvidia", handlers=(*engine.handlers, "nvidia"), imports=(*engine.imports, OURS)
    )
    return replace(host, runtimes=(running,), files={**host.files, OURS: FileFacts(OURS, text)})


def by_class(host: HostFacts) -> HostFacts:
    """The same after nvidia-ctk runtime configure: CRI-O has the handler, by runc, and crun is its default."""
    there = by_nvidia(host)
    text = (there.files[OURS].text or "").replace('default_runtime = "nvidia"\n', "")
    crio = replace(there.runtimes[0], effective_default="crun")
    tools = replace(there.toolkit, runtime_path="/usr/bin/nvidia-container-runtime")
    return replace(there, runtimes=(crio,), files={**there.files, OURS: FileFacts(OURS, text)}, toolkit=tools)


def plan(host: HostFacts, spec: Spec = RUNTIME) -> Plan:
    return make_plan(host, spec, load_catalog())


def written(found: Plan) -> dict[str, str]:
    return {a.path: a.text for step in found.steps for a in step.actions if isinstance(a, PutFile)}


@pytest.mark.parametrize(
    ("host", "runtimes"),
    [
        (node(), f'["{CRUN}", "runc", "crun"]'),
        (node("/usr/bin/crun", BOTH), '["/usr/bin/crun", "runc", "crun"]'),
        (node(config=OF_OLD), f'["{CRUN}", "docker-runc", "runc"]'),
        (node(config="""[nvidia-container-runtime]\nruntimes = ["[\\"crun\\"]"]\n"""), f'["{CRUN}"]'),
    ],
    ids=["out of PATH", "runc is in PATH, too", "of a file", "what nvidia-ctk config --set makes"],
)  # fmt: skip
def test_crios_own_runtime_is_the_first_that_nvidias_looks_for_before_crio_is_restarted(
    host: HostFacts, runtimes: str
) -> None:
    found = plan(host)
    assert [step.id for step in found.steps] == ["toolkit.config", "crio.default"]
    assert f"runtimes = {runtimes}\n" in written(found)[TOOLKIT_CONFIG]


@pytest.mark.parametrize(
    "host",
    [
        node("/usr/bin/crun", ("/usr/bin/crun",)),
        node(config=f'[nvidia-container-runtime]\nruntimes = ["{CRUN}"]\n'),
        node("/usr/bin/crun", BOTH, '[nvidia-container-runtime]\nruntimes = ["crun", "runc"]\n'),
    ],
    ids=["the only one there is", "named by its path", "named first"],
)
def test_a_config_that_finds_it_is_unchanged(host: HostFacts) -> None:
    assert [step.id for step in plan(host).steps] == ["crio.default"]


def test_with_the_handler_and_another_default_it_is_set_as_well() -> None:
    found = plan(node(), replace(RUNTIME, runtime=RuntimeSpec(default=False)))
    assert f'["{CRUN}", "runc", "crun"]' in written(found)[TOOLKIT_CONFIG]


def test_a_node_that_runs_by_another_one_since_is_not_changed_under_its_containers() -> None:
    assert not plan(by_nvidia(node("/usr/bin/crun", BOTH))).steps


def test_a_node_on_which_nothing_starts_gets_its_runtime_without_a_restart() -> None:
    found = plan(by_nvidia(node()))
    assert [step.id for step in found.steps] == ["toolkit.config"]
    assert f'["{CRUN}", "runc", "crun"]' in written(found)[TOOLKIT_CONFIG]


def test_before_the_toolkit_brings_the_file_crio_is_not_restarted_and_that_it_will_be_counts() -> None:
    found = plan(node(), Spec(only=("toolkit", "runtime")))
    assert "crio.default" not in [step.id for step in found.steps]
    assert found.replan_after
    assert found.restarts == ("crio.service",)
    assert any(f"must name {CRUN} first" in kept.text for kept in found.kept)


def with_init(host: HostFacts, init: str, **engine: Any) -> HostFacts:
    return replace(host, init=init, runtimes=(replace(host.runtimes[0], **engine),))


@pytest.mark.parametrize(
    "host",
    [with_init(node(), "systemd", active=False), with_init(node(), "chroot"), with_init(node(), "none")],
    ids=["stopped", "an image", "nothing restarts it"],
)
def test_a_restart_that_never_comes_is_neither_announced_nor_counted(host: HostFacts) -> None:
    found = plan(host, Spec(only=("toolkit", "runtime")))
    (waits,) = [kept for kept in found.kept if kept.id == "crio.default"]
    assert waits.text.startswith("crio gets nvidia after the toolkit is installed")
    assert found.restarts == ()


def test_an_order_that_was_asked_for_is_the_askers() -> None:
    asked = replace(RUNTIME, toolkit_config=ToolkitConfig(runtimes=("runc",)))
    assert [step.id for step in plan(node("/usr/bin/crun", BOTH), asked).steps] == ["crio.default"]


@pytest.mark.parametrize(
    "table",
    ['runtime_path = "/usr/bin/kata"\nruntime_type = "vm"', 'runtime_path = "/usr/bin/nvidia-container-runtime"'],
    ids=["kata", "NVIDIA's by another name"],
)
def test_a_default_that_nvidias_cannot_start_is_not_named_to_it(table: str) -> None:
    host, path = node(), "/etc/crio/crio.conf.d/10-crio.conf"
    text = f'[crio.runtime]\ndefault_runtime = "other"\n[crio.runtime.runtimes.other]\n{table}\n'
    engine = replace(host.runtimes[0], merged_config=None, effective_default="other")
    host = replace(host, runtimes=(engine,), files={**host.files, path: FileFacts(path, text)})
    assert [step.id for step in plan(host).steps] == ["crio.default"]


def beside(engine: str, containers: int | None, *, toolkit: bool = True) -> HostFacts:
    """CRI-O by crun next to an engine that has the handler already, where nvidia-container-runtime starts runc."""
    other = replace(engine_facts(engine, "28.0.1"), handlers=("nvidia", "runc"), containers_running=containers)
    host = node("/usr/bin/crun", BOTH, OF_OLD) if toolkit else node("/usr/bin/crun", BOTH)
    tools = replace(host.toolkit, runtime_path="/usr/bin/nvidia-container-runtime" if toolkit else None)
    return replace(host, runtimes=(*host.runtimes, other), toolkit=tools)


@pytest.mark.parametrize(("engine", "containers"), [("docker", 3), ("docker", None), ("podman", None)])
def test_where_another_engine_has_containers_by_runc_crio_is_refused_and_the_rest_is_done(
    engine: str, containers: int | None
) -> None:
    host = beside(engine, containers)
    found = plan(host, Spec())
    (refused,) = found.refused
    assert refused.id == "crio.default"
    assert f"CRI-O needs /usr/bin/crun below nvidia-container-runtime, and {engine} has runc there" in refused.text
    assert "--ctk-set runtimes=/usr/bin/crun,docker-runc,runc" in refused.remedy.text
    assert "driver.install" in [step.id for step in found.steps]
    assert TOOLKIT_CONFIG not in written(found)
    assert TOOLKIT_CONFIG not in written(plan(host, replace(RUNTIME, runtimes=(engine,))))


@pytest.mark.parametrize("host", [beside("docker", 0), beside("podman", None, toolkit=False)], ids=["none", "unmade"])
def test_where_no_container_can_be_by_runc_nothing_is_refused(host: HostFacts) -> None:
    found = plan(host)
    assert not found.refused
    assert '["/usr/bin/crun", ' in written(found)[TOOLKIT_CONFIG]


RUNC_FIRST = '[nvidia-container-runtime]\nruntimes = ["runc", "crun"]\n'


def test_pods_that_runc_made_are_not_left_to_crun_by_a_change_of_the_default() -> None:
    host = by_class(node("/usr/bin/crun", BOTH, RUNC_FIRST))
    found = plan(host, Spec())
    (refused,) = found.refused
    assert (refused.id, TOOLKIT_CONFIG in written(found)) == ("crio.default", False)
    assert refused.text == "CRI-O's default is crun, and its containers by nvidia are runc's"
    assert "drain the node" in refused.remedy.text
    assert "gpunode setup --only toolkit,runtime --ctk-set runtimes=/usr/bin/crun,runc,crun" in refused.remedy.text
    asked = plan(host, Spec(only=("toolkit", "runtime"), toolkit_config=ToolkitConfig(runtimes=("crun", "runc"))))
    assert not asked.refused
    assert {TOOLKIT_CONFIG, OURS} <= set(written(asked))
    assert not plan(host, replace(RUNTIME, runtime=RuntimeSpec(default=False))).refused


def test_a_default_that_nvidias_starts_already_is_changed_at_once() -> None:
    host = by_class(node("/usr/bin/crun", BOTH, '[nvidia-container-runtime]\nruntimes = ["crun", "runc"]\n'))
    assert [step.id for step in plan(host).steps] == ["crio.default"]
