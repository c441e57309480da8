"""containerd's configuration in several files: which one is edited, and in what order they are written."""

from __future__ import annotations

import sys

import pytest

from gpunode.engines.base import Rewrite
from gpunode.engines.containerd.engine import Containerd
from gpunode.errors import ConfigFileError, UnsupportedHost, UsageError
from gpunode.model.action import PutFile, Run
from gpunode.model.spec import RuntimeSpec, Spec
from gpunode.planner.engines.steps import runtime_steps
from tests.engines.hosts import engine_facts, host_with
from tests.engines.test_containerd import DROP_IN, PATH, V2, V3, rewrite

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found, unused-ignore]

GLOB = "/etc/containerd/conf.d/*.toml"
ROOT = "version = 3\n"
IMPORTING = f"version = 3\nimports = ['{GLOB}']\n"
ENGINE = f'[plugins."{V3}".containerd]\n'
HANDLER = f"""[plugins."{V3}".containerd.runtimes.nvidia]
runtime_type = "io.containerd.runc.v2"
[plugins."{V3}".containerd.runtimes.nvidia.options]
BinaryName = "/usr/bin/nvidia-container-runtime"
"""
DEFAULT = f'{ENGINE}default_runtime_name = "nvidia"\n'


def written(result: Rewrite) -> dict[str, str]:
    return {edit.path: edit.after for edit in result.edits if edit.changed}


def test_the_drop_in_is_written_before_the_file_that_imports_it() -> None:
    assert list(written(rewrite(ROOT, "2.1.9"))) == [DROP_IN, PATH]


def test_a_root_that_imports_the_directory_already_is_unchanged() -> None:
    assert list(written(rewrite(IMPORTING, "2.1.9"))) == [DROP_IN]


def test_the_second_run_with_the_drop_in_on_the_host_changes_nothing() -> None:
    first = written(rewrite(ROOT, "2.1.9"))
    again = rewrite(first[PATH], "2.1.9", files=first, imports=(DROP_IN,))
    assert (again.changed, again.main.path) == (False, DROP_IN)


def test_a_default_that_says_nothing_of_the_cgroup_driver_is_copied_as_it_is() -> None:
    """runc beside it says false, which is what nothing means: a second pass has nothing to add."""
    runc = f'[plugins."{V3}".containerd.runtimes.runc]\nruntime_type = "io.containerd.runc.v2"\n'
    other = runc.replace(".runc]", ".crun]")
    told = f'[plugins."{V3}".containerd.runtimes.runc.options]\nSystemdCgroup = false\n'
    root = f'version = 3\n{ENGINE}default_runtime_name = "crun"\n{other}{runc}{told}'
    first = written(rewrite(root, "2.1.9"))
    assert "SystemdCgroup" not in first[DROP_IN]
    assert not rewrite(first[PATH], "2.1.9", files=first, imports=(DROP_IN,)).changed


def test_an_edit_in_place_of_an_earlier_day_remains_right() -> None:
    before = written(rewrite(ROOT, "2.1.9", RuntimeSpec(drop_in="none")))[PATH]
    again = rewrite(before, "2.1.9")
    assert (again.changed, again.main.path) == (False, PATH)


@pytest.mark.parametrize(
    ("files", "changed"),
    [
        ({DROP_IN: f"version = 3\n{DEFAULT}{HANDLER}"}, []),
        ({DROP_IN: f"version = 3\n# by nvidia-ctk\n{HANDLER}"}, [DROP_IN]),
        ({DROP_IN: HANDLER}, [DROP_IN]),
        ({"/etc/containerd/conf.d/10-site.toml": f"version = 3\n{ENGINE}default_runtime_name = 'runc'\n"}, [DROP_IN]),
        ({"/etc/containerd/conf.d/10-gpu.toml": f"version = 3\n{HANDLER}"}, ["/etc/containerd/conf.d/10-gpu.toml"]),
        (
            {
                "/etc/containerd/conf.d/10-gpu.toml": f"version = 3\n{HANDLER}",
                "/etc/containerd/conf.d/20-site.toml": f"version = 3\n{ENGINE}default_runtime_name = 'runc'\n",
            },
            ["/etc/containerd/conf.d/20-site.toml"],
        ),
        (
            {"/etc/containerd/conf.d/99-zz.toml": f"version = 3\n{ENGINE}default_runtime_name = 'runc'\n"},
            ["/etc/containerd/conf.d/99-zz.toml"],
        ),
        ({"/etc/containerd/conf.d/10-cni.toml": f'version = 3\n[plugins."{V3}".cni]\nbin_dirs = ["/x"]\n'}, [DROP_IN]),
    ],
    ids=[
        "nvidia-ctk's drop-in is right",
        "nvidia-ctk's drop-in lacks the default",
        "a drop-in without a version has the root's",
        "a default of another drop-in is outdone by a later file",
        "the handler of another drop-in is not defined twice",
        "the handler in one file, the default in a later one",
        "a file that is read last takes precedence",
        "a drop-in about something else",
    ],
)
def test_on_2_x_the_smallest_set_of_files_changes(files: dict[str, str], changed: list[str]) -> None:
    result = rewrite(IMPORTING, "2.1.9", files=files, imports=tuple(files))
    assert list(written(result)) == changed
    after = {**files, **written(result)}
    merged = [tomllib.loads(after[path])["plugins"][V3].get("containerd", {}) for path in sorted(after)]
    assert [engine["default_runtime_name"] for engine in merged if "default_runtime_name" in engine][-1] == "nvidia"
    assert sum("nvidia" in engine.get("runtimes", {}) for engine in merged) == 1
    assert not rewrite(IMPORTING, "2.1.9", files=after, imports=tuple(sorted(after))).changed


def test_on_1_x_an_import_whose_cri_table_is_empty_is_the_one_that_holds() -> None:
    """Somebody put all of it behind comments, and left the header: it takes the place of the root's whole table."""
    drop_in = "/etc/containerd/conf.d/a.toml"
    root = f'version = 2\nimports = ["/etc/containerd/conf.d/*.toml"]\n[plugins."{V2}"]\nsandbox_image = "pause"\n'
    files = {drop_in: f'version = 2\n[plugins."{V2}"]\n# sandbox_image = "other"\n'}
    after = written(rewrite(root, "1.7.24", files=files, imports=(drop_in,)))
    assert list(after) == [drop_in]
    assert tomllib.loads(after[drop_in])["plugins"][V2]["containerd"]["default_runtime_name"] == "nvidia"


def test_a_drop_in_that_lies_there_and_is_not_imported_is_edited_and_imported() -> None:
    result = rewrite(ROOT, "2.1.9", files={DROP_IN: f"version = 3\n# by hand\n{HANDLER}"})
    assert list(written(result)) == [DROP_IN, PATH]
    assert "# by hand" in written(result)[DROP_IN]


def test_files_that_lie_unread_in_the_directory_are_not_brought_into_force() -> None:
    neighbour = {"/etc/containerd/conf.d/50-old.toml": "version = 3\noom_score = 1\n"}
    root = written(rewrite(ROOT, "2.1.9", files=neighbour))[PATH]
    assert tomllib.loads(root)["imports"] == ["/etc/containerd/conf.d/99-nvidia*.toml"]


def test_cri_is_switched_on_in_every_file_that_switches_it_off() -> None:
    off = f"disabled_plugins = ['{V3}']\n"
    files = {"/etc/containerd/conf.d/10-off.toml": f"version = 3\n{off}"}
    result = rewrite(f"{IMPORTING}{off}", "2.1.9", files=files, imports=tuple(files))
    assert list(written(result)) == [DROP_IN, "/etc/containerd/conf.d/10-off.toml", PATH]
    assert all(V3 not in tomllib.loads(text).get("disabled_plugins", []) for text in written(result).values())
    assert sum("CRI switched on" in said for said in result.added) == 2


def test_registry_passwords_stay_in_the_file_they_are_in() -> None:
    secret = f'[plugins."{V2}".registry.configs."x".auth]\npassword = "not-for-every-eye"\n'
    for version in ("2.1.9", "1.7.24"):
        result = rewrite(f"version = 2\n{secret}", version, merged_config=f"version = 2\n{secret}")
        assert [edit.path for edit in result.edits if "not-for-every-eye" in edit.after] == [PATH]


@pytest.mark.parametrize(
    ("drop_in", "paths"),
    [
        (None, [DROP_IN, PATH]),
        ("none", [PATH]),
        ("/etc/containerd/gpu.toml", ["/etc/containerd/gpu.toml", PATH]),
    ],
)
def test_where_it_goes_can_be_chosen(drop_in: str | None, paths: list[str]) -> None:
    assert list(written(rewrite(ROOT, "2.1.9", RuntimeSpec(drop_in=drop_in)))) == paths


@pytest.mark.parametrize("drop_in", ["conf.d/x.toml", "/etc/containerd/x.conf", PATH])
def test_what_can_be_no_drop_in_is_a_usage_error(drop_in: str) -> None:
    with pytest.raises(UsageError, match="is not a file for a drop-in"):
        rewrite(ROOT, "2.1.9", RuntimeSpec(drop_in=drop_in))


def test_1_x_gets_no_drop_in_since_it_would_replace_the_whole_section() -> None:
    with pytest.raises(UnsupportedHost, match=r"containerd 1\.7\.24 gets no drop-in"):
        rewrite("version = 2\n", "1.7.24", RuntimeSpec(drop_in=DROP_IN))


@pytest.mark.parametrize(
    ("version", "path", "notes"),
    [("1.6.20", PATH, 1), ("1.7.24", DROP_IN, 0)],
    ids=["1.6 looks for relative globs in /", "1.7 beside the file"],
)
def test_a_relative_glob_is_resolved_as_the_daemon_does(version: str, path: str, notes: int) -> None:
    other = f'version = 2\n[plugins."{V2}"]\nsandbox_image = "other"\n'
    result = rewrite('version = 2\nimports = ["conf.d/*.toml"]\n', version, files={DROP_IN: other}, imports=(DROP_IN,))
    assert result.main.path == path
    assert sum("looks for in /" in note for note in result.notes) == notes


@pytest.mark.parametrize(
    ("version", "root", "drop_in"),
    [
        ("2.1.9", IMPORTING, f'version = 2\n[plugins."{V2}".containerd]\nsnapshotter = "x"\n'),
        ("2.1.9", f"version = 2\nimports = ['{GLOB}']\n", f"version = 3\n{ENGINE}snapshotter = 'x'\n"),
        ("2.1.9", f"version = 2\nimports = ['{GLOB}']\n", "[plugins.cri]\nsandbox_image = 'x'\n"),
        ("1.7.24", f"version = 2\nimports = ['{GLOB}']\n", "version = 1\n[plugins.cri]\nsandbox_image = 'x'\n"),
    ],
    ids=["v2 below v3", "v3 below v2", "short names below v2", "v1 below v2"],
)
def test_files_in_different_schemas_are_refused(version: str, root: str, drop_in: str) -> None:
    with pytest.raises(UnsupportedHost, match="its importer"):
        rewrite(root, version, files={DROP_IN: drop_in}, imports=(DROP_IN,))


def test_a_drop_in_of_wrong_types_that_lies_there_unread_is_refused() -> None:
    with pytest.raises(ConfigFileError, match="plugins is 1, and containerd wants a table"):
        rewrite(ROOT, "2.1.9", files={DROP_IN: "plugins = 1\n"})


def test_imports_that_are_no_list_are_refused() -> None:
    with pytest.raises(ConfigFileError, match="imports is '/x', and containerd wants a list of texts"):
        rewrite("version = 3\nimports = '/x'\n", "2.1.9")


OTHER = "/opt/site/containerd/config.toml"


@pytest.mark.parametrize("named", [None, ("containerd",)], ids=["auto", "--runtime containerd"])
def test_of_two_containerds_each_gets_its_own_file_and_its_own_socket(named: tuple[str, ...] | None) -> None:
    first = engine_facts("containerd", "2.1.9")
    other = type(first)(
        **{
            **vars(first),
            "config_path": OTHER,
            "socket": "/run/site/containerd.sock",
            "unit": "site-containerd.service",
            "flags": ("--config", OTHER, "--address", "/run/site/containerd.sock"),
        }
    )
    host = host_with(first, other, files={PATH: ROOT, OTHER: ROOT})
    for engine, root in ((first, PATH), (other, OTHER)):
        directory = root.removesuffix("/config.toml")
        assert list(written(Containerd().rewrite(host, engine, RuntimeSpec()))) == [
            f"{directory}/conf.d/99-nvidia.toml",
            root,
        ]
        restart, verify = (*Containerd().apply(engine), Containerd().verify(engine, RuntimeSpec()))
        assert isinstance(restart, Run)
        assert (restart.argv[3], verify.argv[4]) == (engine.unit, engine.socket)
    steps, _ = runtime_steps(host, Spec(runtimes=named))
    paths = [action.path for step in steps for action in step.actions if isinstance(action, PutFile)]
    assert [path for path in paths if "conf.d" not in path] == [PATH, OTHER]


def test_a_drop_in_is_validated_through_a_file_that_imports_it() -> None:
    validate = Containerd().validate(engine_facts("containerd", "2.1.9", binary="/usr/bin/containerd"), DROP_IN)
    assert validate is not None
    assert validate.argv[3:] == ("/usr/bin/containerd", PATH, DROP_IN, "{candidate}")
