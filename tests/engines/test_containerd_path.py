"""The program of a containerd handler: a named path wins, one that is there stays, one that leads nowhere is said."""

from __future__ import annotations

import pytest

from gpunode.engines.base import Rewrite
from gpunode.engines.containerd.engine import Containerd
from gpunode.engines.crio import Crio
from gpunode.model.action import Run
from gpunode.model.spec import RuntimeSpec, Spec
from gpunode.planner.engines.steps import runtime_steps
from tests.engines.hosts import PATHS, engine_facts, host_with

OPERATORS, OWN, NAMED = (f"{d}/nvidia-container-runtime" for d in ("/usr/local/nvidia/toolkit", "/usr/bin", "/opt/gpu"))
FILES = {
    "containerd": """version = 2
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia.options]
BinaryName = "PATH"
""",
    "crio": """[crio.runtime.runtimes.nvidia]
runtime_path = "PATH"
""",
}
ENGINES = {"containerd": Containerd(), "crio": Crio()}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize(
    ("named", "missing", "runs", "said"),
    [
        (None, (), OPERATORS, f"runtimes.nvidia keeps the path it has, {OPERATORS}"),
        (NAMED, (), NAMED, ""),
        (None, (OPERATORS,), OWN, f"{OPERATORS}, which runtimes.nvidia named, is not on this host's disk"),
        (NAMED, (OPERATORS,), NAMED, f"{OPERATORS}, which runtimes.nvidia named, is not on this host's disk"),
    ],
    ids=["it stays", "a named one wins", "it leads nowhere", "it leads nowhere, and another is named"],
)
def test_one_rule_for_the_path(name: str, named: str | None, missing: tuple[str, ...], runs: str, said: str) -> None:
    found = _rewrite(name, RuntimeSpec(path=named), missing)
    after = "".join(edit.after for edit in found.edits)
    assert (f'"{runs}"' in after) is (name == "containerd" or runs != OPERATORS)  # CRI-O: what changes
    assert found.binaries == (runs,)
    assert (said in found.notes) is bool(said)


@pytest.mark.parametrize(("name", "runs"), [("containerd", OWN), ("crio", "/usr/bin/runc")])
def test_a_low_level_runtime_stays_only_where_the_engine_runs_hooks(name: str, runs: str) -> None:
    """runc by itself gives a container no GPU; CRI-O gives it one with NVIDIA's OCI hook."""
    found = _rewrite(name, RuntimeSpec(), (), "/usr/bin/runc")
    assert found.binaries == (runs,)
    said = "/usr/bin/runc, which runtimes.nvidia named, gives a container no GPU"
    assert (said in found.notes) is (name == "containerd")


def _rewrite(name: str, want: RuntimeSpec, missing: tuple[str, ...], program: str = OPERATORS) -> Rewrite:
    facts = engine_facts(name, "1.7.24" if name == "containerd" else "1.33.1", missing_binaries=missing)
    files = {PATHS[name]: FILES[name].replace("PATH", program)}
    return ENGINES[name].rewrite(host_with(facts, files=files), facts, want)


def test_a_program_that_is_not_there_is_found_before_containerd_runs_it() -> None:
    host = host_with(engine_facts("containerd", "1.7.24"), files={PATHS["containerd"]: "version = 2\n"})
    (step,), _ = runtime_steps(host, Spec(runtime=RuntimeSpec(path=NAMED)))
    look = step.actions[0]
    assert isinstance(look, Run)
    assert look.description == f"look for {NAMED}"
