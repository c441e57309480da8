"""What differs between engines is asked of the engine (engines/base.py); a name elsewhere is a misplaced branch."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from gpunode.engines.registry import ENGINES

PRODUCT = Path(__file__).parents[2] / "gpunode"
# Files that may name an engine, each with its reason.
MAY = {
    "catalog/cdi_versions.py": "from which version on each reads which specification: versions.yaml has the numbers",
    "checks/rt/containerd.py": "checks of containerd, whose ids name it",
    "checks/rt/docker.py": "checks of docker, whose ids name it",
    "checks/upgrade/engines.py": "what a later kubelet asks of each engine: versions.yaml has the numbers",
    "checks/upgrade/notes.py": "who wrote a kubelet's arguments, by distribution",
    "checks/rules/profile.py": "a docker host is a profile too",
    "editing/toml_text.py": "the tool that names a fault of its TOML too; other engines say their own (drop_ins.load)",
    "facts/engines.py": "reads their own sections of the probe",
    "facts/runtimes.py": "reads their own sections of the probe",
    "facts/kubernetes.py": "distributions by their directories and processes; kubeadm is among them, and no engine",
    "facts/kubelet.py": "what distributions pass on to their kubelets, by their processes and files",
    "facts/recordings.py": "a host name that says nothing",
    "kubernetes/plugin_host.py": "what the device plugin wants of an engine that speaks CRI, by engine and release",
    "kubernetes/readiness.py": "how each distribution's kubelet is told, by its unit",
    "masking/tools.py": "command lines of other people's tools, and where their secrets stand",
    "planner/engines/kubelet/needed.py": "Accelerators of kubelets before 1.12 is for docker alone",
    "model/facts.py": "a label as it is printed: containerd@UNIT",
}
# Shell that is sent to hosts, likewise; the probe (shell/probe) is where engines are looked for.
SH_MAY = {
    "active/pod.sh": "where distributions keep an administrator's kubeconfig and their kubectl",
    "common.sh": "CRI-O's directory, whose files are read under any name: what is being written must lie elsewhere",
    "daemon/containers.sh": "each engine's own list of its containers",
    "daemon/dump.sh": "containerd's own check of a file: its dump of the whole configuration",
    "daemon/podman.sh": "podman's own question for its default runtime",
    "daemon/query.sh": "the questions that daemons answer: CRI's, docker's and CRI-O's",
    "daemon/query_as_user.sh": "the question that a user's docker answers",
    "daemon/restart.sh": "docker's daemon is dockerd; what the daemons write into the log when they fail",
    "daemon/verify.sh": "whose question is asked, and a user's docker",
    "trust.sh": "command lines of these programs that are no daemon; where distributions keep kubectl and a socket",
}


def named(path: Path) -> list[int]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [n.lineno for n in ast.walk(tree) if isinstance(n, ast.Constant) and n.value in tuple(ENGINES)]


def test_an_engine_is_named_in_its_own_room_alone() -> None:
    found = {path.relative_to(PRODUCT).as_posix(): lines for path in PRODUCT.rglob("*.py") if (lines := named(path))}
    others = {path: lines for path, lines in found.items() if not path.startswith("engines/")}
    assert sorted(others) == sorted(MAY), {path: lines for path, lines in others.items() if path not in MAY}


def in_shell() -> dict[str, set[str]]:
    """Which engines, and dockerd, the code of each script names; comments may."""
    directory = PRODUCT / "shell"
    name = re.compile(rf"(?<!\w)({'|'.join(ENGINES)}|dockerd)(?!\w)")
    found = {}
    for path in directory.rglob("*.sh"):
        code = (re.sub(r"(^|\s)#.*", "", line) for line in path.read_text(encoding="utf-8").splitlines())
        if names := {match[1] for line in code for match in name.finditer(line)}:
            found[path.relative_to(directory).as_posix()] = names
    return found


def test_shell_names_an_engine_in_the_probe_and_where_there_is_a_reason() -> None:
    others = {path: names for path, names in in_shell().items() if not path.startswith("probe/")}
    assert sorted(others) == sorted(SH_MAY), {path: names for path, names in others.items() if path not in SH_MAY}
