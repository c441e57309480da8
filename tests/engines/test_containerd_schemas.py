"""Settings in another schema than the one the daemon reads: dead ones count for nothing, and live ones are not lost."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace

import pytest

from gpunode.engines.base import Rewrite
from gpunode.engines.containerd import live
from gpunode.engines.containerd.cri_section import containerd_section
from gpunode.engines.containerd.imports import gathered
from gpunode.engines.containerd.provenance import origins
from gpunode.errors import ConfigFileError, UnsupportedHost
from gpunode.model.facts import RuntimeFacts
from gpunode.model.spec import RuntimeSpec
from tests.engines.hosts import engine_facts, host_with
from tests.engines.test_containerd import DROP_IN, PATH, V2, V3, rewrite

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found, unused-ignore]

OTHER, HIDDEN = "/etc/containerd/conf.d/50-site.toml", "/etc/containerd/conf.d/.site.toml"
IMPORTS = "imports = ['/etc/containerd/conf.d/*.toml']\n"


def runtime(plugin: str, name: str, cgroup: bool | None = None) -> str:
    table = f"[plugins.'{plugin}'.containerd.runtimes.{name}]\nruntime_type = 'io.containerd.runc.v2'\n"
    options = f"[plugins.'{plugin}'.containerd.runtimes.{name}.options]\nSystemdCgroup = {str(cgroup).lower()}\n"
    return table + (options if cgroup is not None else "")


def default(plugin: str, name: str) -> str:
    return f"[plugins.'{plugin}'.containerd]\ndefault_runtime_name = '{name}'\n"


@dataclass(frozen=True)
class Tree:
    """Files that import others, for the daemons of some versions. The lab starts the daemons on them."""

    claim: str
    versions: tuple[str, ...]
    files: dict[str, str]
    cgroup: bool | None  # of nvidia afterwards; None: not written


TREES = (
    Tree(
        "the cgroup of a default that is silent about it is written out, where runc's in another file is true",
        ("2.1.9",),
        {
            PATH: f"version = 3\n{IMPORTS}{runtime(V3, 'runc', True)}",
            OTHER: f"version = 3\n{default(V3, 'crun')}{runtime(V3, 'crun')}",
        },
        False,
    ),
    Tree(
        "the default of a hidden drop-in, which Go's star takes, is replaced",
        ("1.7.24", "2.1.9"),
        {
            PATH: f"version = 2\n{IMPORTS}{runtime(V2, 'runc', False)}",
            HIDDEN: f"version = 2\n{default(V2, 'crun')}{runtime(V2, 'crun', True)}",
        },
        True,
    ),
    Tree(
        "names of version 3 in a drop-in of a version 2 file are joined under those names",
        ("2.1.9",),
        {PATH: f"version = 2\n{IMPORTS}", OTHER: f"version = 2\n{runtime(V3, 'runc', True)}"},
        True,
    ),
    Tree(
        "names of version 3 in a drop-in are dead for 1.x",
        ("1.7.24",),
        {
            PATH: f"version = 2\n{IMPORTS}{runtime(V2, 'runc', False)}",
            OTHER: f"version = 2\n{runtime(V3, 'runc', True)}",
        },
        False,
    ),
)  # fmt: skip
PLACES = [pytest.param(tree, version, id=f"{tree.claim} {version}") for tree in TREES for version in tree.versions]


def done(tree: Tree, version: str) -> tuple[Rewrite, dict[str, str]]:
    """The rewrite, and the files after it."""
    others = {path: text for path, text in tree.files.items() if path != PATH}
    found = rewrite(tree.files[PATH], version, files=others, imports=tuple(others))
    return found, {**tree.files, **{edit.path: edit.after for edit in found.edits}}


@pytest.mark.parametrize(("tree", "version"), PLACES)
def test_nvidia_is_the_default_in_force_with_the_cgroup_of_the_one_before(tree: Tree, version: str) -> None:
    first, after = done(tree, version)
    facts, host = _facts(after, version), host_with(_facts(after, version), files=after)
    engine = containerd_section(live.effective(facts, gathered(host, facts)))
    assert engine["default_runtime_name"] == "nvidia"
    assert engine["runtimes"]["nvidia"]["options"].get("SystemdCgroup") is tree.cgroup
    assert first.changed
    assert not rewrite(after[PATH], version, files=after, imports=facts.imports).changed


def _facts(files: dict[str, str], version: str) -> RuntimeFacts:
    return engine_facts("containerd", version, imports=tuple(sorted(set(files) - {PATH})))


DEAD = f"version = 3\n{default(V2, 'crun')}{runtime(V2, 'crun')}{runtime(V2, 'runc', True)}"
UNVERSIONED = runtime(V2, "runc", True)


@pytest.mark.parametrize(
    ("text", "version"),
    [(DEAD, "2.1.9"), (UNVERSIONED, "1.7.24"), (f"version = 2\n{runtime(V3, 'runc', True)}", "1.7.24")],
    ids=["version 2's names in a version 3 file", "names in a file without a version", "version 3's names on 1.7"],
)
def test_what_is_dead_is_not_copied_and_is_said(text: str, version: str) -> None:
    found = rewrite(text, version, RuntimeSpec(drop_in="none"))
    assert found.added == ("+ handler nvidia", "default runc → nvidia")
    assert "is of another schema: containerd ignores what it sets for runtimes" in " ".join(found.notes)


def test_where_a_setting_comes_from_is_never_a_dead_one() -> None:
    facts = engine_facts("containerd", "2.1.9")
    said = {one.setting: one.where for one in origins(host_with(facts, files={PATH: DEAD}), facts)}
    assert said == {"default runtime": "the daemon's own default", "handler runc": "the daemon's own default"}


def test_of_a_version_1_file_it_is_said_that_2_x_ignores_it() -> None:
    assert "2.0 to 2.2 ignore its settings, nvidia included" in rewrite("[plugins.cri]\n", "1.7.24").notes[0]


def test_cdi_is_switched_on_in_a_version_1_file() -> None:
    found = rewrite("[plugins.cri]\n", "1.7.24", RuntimeSpec(cdi=True))
    assert tomllib.loads(found.main.after)["plugins"]["cri"]["enable_cdi"] is True
    assert "+ enable_cdi" in found.added


@pytest.mark.parametrize(
    ("files", "version", "problem"),
    [
        ({PATH: f"version = 2\n{runtime(V2, 'runc')}{runtime(V3, 'runc')}"}, "2.1.9", f"{PATH} under plugins.'{V2}'"),
        (
            {PATH: f"version = 2\n{IMPORTS}{runtime(V2, 'runc')}", OTHER: runtime(V3, "runc")},
            "2.1.9",
            f"{OTHER} is in version 2 and sets runtimes under plugins.'{V3}'",
        ),
        ({PATH: f"version = 2\n{runtime(V3, 'runc')}"}, None, f"{PATH} is in version 2 and sets runtimes"),
        ({PATH: f"version = 2\n{IMPORTS}", OTHER: "version = 3\noom_score = 1\n"}, "2.3.4", "its importer"),
    ],
    ids=["both names in one file", "both names in two files", "which of them is not known", "higher than its root"],
)
def test_what_a_daemon_would_take_by_halves_is_refused(
    files: dict[str, str], version: str | None, problem: str
) -> None:
    others = {path: text for path, text in files.items() if path != PATH}
    with pytest.raises(UnsupportedHost) as refused:
        rewrite(files[PATH], version, files=others, imports=tuple(others))
    assert problem in refused.value.problem


@pytest.mark.parametrize("version", ["1.7.24", "2.1.9"])
def test_an_import_that_is_not_there_is_refused(version: str) -> None:
    """What is added behind it would not be read: containerd 2.1 goes on without a word, 1.x does not start."""
    with pytest.raises(ConfigFileError) as refused:
        rewrite(f'version = 2\nimports = ["{OTHER}"]\n', version)
    assert refused.value.problem == f"{PATH} imports {OTHER}, which is not there"


@pytest.mark.parametrize(
    ("root", "drop_in", "wrote"),
    [
        (f"version = 4\n{IMPORTS}", f"version = 3\n{runtime(V3, 'runc', True)}", DROP_IN),
        (f"version = 3\n{IMPORTS}", f"version = 2\n{runtime(V2, 'runc', True)}", DROP_IN),
        (f"{IMPORTS}{runtime('cri', 'runc', True)}", "", PATH),
    ],
    ids=["version 4 imports version 3", "version 3 imports version 2", "version 1"],
)
def test_2_3_reads_every_schema_and_migrates_each_file(root: str, drop_in: str, wrote: str) -> None:
    tree = Tree("", (), {PATH: root, **({OTHER: drop_in} if drop_in else {})}, cgroup=True)
    first, after = done(tree, "2.3.4")
    assert [edit.path for edit in first.edits if edit.changed] == [wrote]
    assert first.added == ("+ handler nvidia (SystemdCgroup = true, copied from runc)", "default runc → nvidia")
    assert "ignore" not in " ".join(first.notes)
    assert tomllib.loads(after[wrote]).get("version", 1) == tomllib.loads(root).get("version", 1)


def test_a_drop_in_of_a_version_1_root_is_wanted_by_name_only() -> None:
    root = runtime("cri", "runc")
    named = rewrite(root, "2.3.4", replace(RuntimeSpec(), drop_in=DROP_IN))
    assert [edit.path for edit in named.edits] == [DROP_IN, PATH]
    assert "cri" in tomllib.loads(named.main.after)["plugins"]
