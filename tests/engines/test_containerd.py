"""config.toml before and after, in every schema and style, and the commands that make containerd take it."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tomlkit
from hypothesis import given, settings
from hypothesis import strategies as st

from gpunode.editing.toml_scan import comments
from gpunode.engines.base import Removal, Rewrite
from gpunode.engines.containerd.engine import Containerd
from gpunode.errors import ConfigFileError, GpunodeError, UnsupportedHost
from gpunode.model.action import Run
from gpunode.model.spec import RuntimeSpec
from tests.engines.hosts import PATHS, engine_facts, host_with

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found, unused-ignore]

PAIRS = Path(__file__).parent / "containerd"
NAMES = sorted(p.name.removesuffix(".before.toml") for p in PAIRS.glob("*.before.toml"))
PATH = PATHS["containerd"]
DROP_IN = "/etc/containerd/conf.d/99-nvidia.toml"
V2, V3 = "io.containerd.grpc.v1.cri", "io.containerd.cri.v1.runtime"
# The first word of a pair's name is the daemon's version.
VERSIONS = {"16": "1.6.20", "17": "1.7.24", "21": "2.1.9", "23": "2.3.0"}
DEFAULT = RuntimeSpec()
WANTED = {"no-default": RuntimeSpec(default=False), "cdi": RuntimeSpec(cdi=True)}


def rewrite(
    text: str | None,
    version: str | None = "1.7.24",
    want: RuntimeSpec = DEFAULT,
    files: dict[str, str] | None = None,
    kubelet: str | None = None,
    **observed: object,
) -> Rewrite:
    facts = engine_facts("containerd", version, **observed)
    host = host_with(facts, files={PATH: text, **(files or {})}, kubelet=kubelet)
    return Containerd().rewrite(host, facts, want)


def pair(name: str) -> tuple[str, RuntimeSpec, dict[str, str], dict[str, str]]:
    """(daemon's version, what is wanted, files before, files after).

    A pair with a NAME.drop-in.toml is what suits a daemon that merges imports; the others are edited in place.
    """
    version, _, claim = name.partition("-")
    want = next((w for prefix, w in WANTED.items() if claim.startswith(prefix)), RuntimeSpec())
    drop_in = PAIRS / f"{name}.drop-in.toml"
    read = {PATH: f"{name}.before.toml"}, {PATH: f"{name}.after.toml"}
    before, after = ({k: (PAIRS / v).read_bytes().decode() for k, v in names.items()} for names in read)
    if drop_in.exists():
        after[DROP_IN] = drop_in.read_bytes().decode()
    return VERSIONS[version], want if drop_in.exists() else replace(want, drop_in="none"), before, after


@pytest.mark.parametrize("name", NAMES)
def test_file_before_and_after(name: str) -> None:
    version, want, before, after = pair(name)
    first = rewrite(before[PATH], version, want)
    assert {**before, **{edit.path: edit.after for edit in first.edits}} == after
    assert not rewrite(after[PATH], version, want, files=after).changed
    for edit in first.edits:
        assert Counter(comments(edit.before or "")) <= Counter(comments(edit.after))


def engines(text: str) -> list[dict[str, Any]]:
    """The containerd section of every CRI plugin in the file."""
    plugins = tomllib.loads(text.removeprefix("\ufeff")).get("plugins", {})
    return [found for key in ("cri", V2, V3) if (found := plugins.get(key, {}).get("containerd"))]


def handlers(text: str) -> set[str]:
    return {name for engine in engines(text) for name in engine.get("runtimes", {})}


def test_there_are_pairs_enough() -> None:
    assert len(NAMES) >= 60


@pytest.mark.parametrize("name", NAMES)
def test_undo_of_a_pair_leaves_nothing_of_the_handler(name: str) -> None:
    _, want, before, after = pair(name)
    if want.handler in before[PATH]:
        return  # it was there before: undo has the bytes of before for that, or leaves it
    for path, text in after.items():
        gone = (DROP_IN,) if path == PATH and DROP_IN in after else ()
        left = Containerd().without(path, text, Removal("nvidia", "runc", before.get(path, ""), gone))
        assert handlers(left).isdisjoint({"nvidia"})
        assert "nvidia" not in [e.get("default_runtime_name") for e in engines(left)]
        assert path == PATH or left == ""


@pytest.mark.parametrize(
    ("version", "schema", "plugin", "handlers"),
    [
        ("1.6.20", 2, V2, ["nvidia", "runc"]),
        ("1.7.24", 2, V2, ["nvidia", "runc"]),
        ("2.1.9", 3, V3, ["nvidia"]),
        (None, 2, V2, ["nvidia", "runc"]),
    ],
    ids=["1.6", "1.7", "2.1 keeps its built-in runc", "unknown version: schema 2 is read by all"],
)
@pytest.mark.parametrize("text", [None, "", "\n  \n", "# nothing set\n"], ids=["absent", "empty", "blank", "comments"])
def test_a_file_without_settings(
    text: str | None, version: str | None, schema: int, plugin: str, handlers: list[str]
) -> None:
    config = tomllib.loads(rewrite(text, version).main.after)
    assert config["version"] == schema
    engine = config["plugins"][plugin]["containerd"]
    assert (engine["default_runtime_name"], sorted(engine["runtimes"])) == ("nvidia", handlers)


def test_crlf_is_kept_and_the_byte_order_mark_goes() -> None:
    after = rewrite("\ufeffversion = 2\r\noom_score = 0 # ours\r\n").main.after
    assert after.startswith("version = 2\r\noom_score = 0 # ours\r\n")
    assert after.count("\n") == after.count("\r\n")


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("version = 2\nroot = /var\n", f"{PATH}:2:8"),
        ("version = 2\n[grpc\n", f"{PATH}:2:"),
        ("version = 2\nversion = 2\n", f"{PATH}:2:"),
        (f'version = 2\n[plugins."{V2}"]\n[plugins."{V2}"]\n', f"{PATH}:3:"),
        ("version = 2\nroot = 'caf\udce9'\n", f"{PATH}:2:12: this byte is not UTF-8"),
        ('version = "2"\n', "version = '2' is not a whole number"),
        ("version = 2.0\n", "version = 2.0 is not a whole number"),
        ("version = true\n", "version = True is not a whole number"),
        (f'version = 2\nplugins."{V2}".containerd = "x"\n', f"plugins.{V2}.containerd is 'x'"),
        (f'version = 2\nplugins."{V2}".containerd.runtimes = []\n', f"plugins.{V2}.containerd.runtimes is []"),
        ("version = 2\nplugins = 1\n", "plugins is 1"),
        ("version = 2\na = [" + "[" * 5000, "nested too deeply"),
        ("version = 2\n[" + "a." * 20_000 + "a]\n", "nested too deeply"),
    ],
    ids=[
        "bare value", "open header", "duplicate key", "duplicate table", "Latin-1", "version as text",
        "version as float", "version as boolean", "section is text", "runtimes is a list", "plugins is a number",
        "five thousand brackets", "a name of twenty thousand parts",
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_edited_is_refused_with_its_place(text: str, where: str) -> None:
    with pytest.raises(ConfigFileError) as refused:
        rewrite(text)
    assert where in refused.value.problem


@pytest.mark.parametrize(
    ("text", "version", "problem"),
    [
        ("[plugins.homemade]\na = 1\n", "2.1.9", "names a plugin homemade, whose full name is not known"),
        ('version = 1\nrequired_plugins = ["homemade"]\n', "2.1.9", "names a plugin homemade"),
        ("version = 3\n", "1.6.20", "version = 3, and the daemon is containerd 1.6.20"),
        ("version = 3\n", "1.7.24", "version = 3, and the daemon is containerd 1.7.24"),
        ("version = 4\n", "2.1.9", "version = 4, and the daemon is containerd 2.1.9"),
        ("version = 5\n", "2.3.0", "version = 5, and the daemon is containerd 2.3.0"),
    ],
    ids=["unknown plugin of version 1", "unknown required plugin", "3 on 1.6", "3 on 1.7", "4 on 2.1", "5 on 2.3"],
)
def test_a_schema_that_the_daemon_would_ignore_is_refused(text: str, version: str, problem: str) -> None:
    with pytest.raises(UnsupportedHost) as refused:
        rewrite(text, version)
    assert problem in refused.value.problem


def test_cdi_on_16_is_refused() -> None:
    with pytest.raises(UnsupportedHost, match=r"containerd 1\.6\.20 has no CDI"):
        rewrite("version = 2\n", "1.6.20", RuntimeSpec(cdi=True))


def test_a_file_that_k3s_generates_is_left_to_k3s() -> None:
    facts = engine_facts("containerd", "2.1.9")
    k3s = type(facts)(**{**vars(facts), "config_path": "/var/lib/rancher/k3s/agent/etc/containerd/config.toml"})
    with pytest.raises(UnsupportedHost, match="k3s"):
        Containerd().rewrite(host_with(k3s, files={}), k3s, RuntimeSpec())


def test_options_of_the_running_configuration_are_copied_where_the_file_has_none() -> None:
    dump = f'[plugins."{V2}".containerd.runtimes.runc]\nruntime_type = "io.containerd.runc.v2"\nruntime_root = ""\n' + (
        f'[plugins."{V2}".containerd.runtimes.runc.options]\nSystemdCgroup = true\nIoUid = 0\n'
    )
    engine = tomllib.loads(rewrite("version = 2\n", merged_config=dump).main.after)["plugins"][V2]["containerd"]
    assert engine["runtimes"]["runc"] == {"runtime_type": "io.containerd.runc.v2", "options": {"SystemdCgroup": True}}
    assert engine["runtimes"]["nvidia"]["options"]["SystemdCgroup"] is True


@pytest.mark.parametrize(
    ("driver", "cgroup", "agrees"),
    [("systemd", "true", True), ("systemd", "false", False), ("cgroupfs", "true", False), ("cgroupfs", "false", True)],
)
def test_a_cgroup_mismatch_with_kubelet_is_reported_and_not_changed(driver: str, cgroup: str, agrees: bool) -> None:
    runc = f'[plugins."{V2}".containerd.runtimes.runc]\nruntime_type = "io.containerd.runc.v2"\n'
    text = f"version = 2\n{runc}options.SystemdCgroup = {cgroup}\n"
    result = rewrite(text, kubelet=driver)
    assert any("cgroup driver" in note for note in result.notes) is not agrees
    nvidia = tomllib.loads(result.main.after)["plugins"][V2]["containerd"]["runtimes"]["nvidia"]
    assert nvidia["options"]["SystemdCgroup"] is (cgroup == "true")


MAIN = f'version = 2\nimports = ["/etc/containerd/conf.d/*.toml"]\n[plugins."{V2}"]\nsandbox_image = "pause"\n'


@pytest.mark.parametrize(
    ("version", "drop_in", "path"),
    [
        ("1.7.24", f'version = 2\n[plugins."{V2}"]\nsandbox_image = "other"\n', DROP_IN),
        ("2.1.9", f'version = 2\n[plugins."{V2}".containerd]\ndefault_runtime_name = "runc"\n', DROP_IN),
        ("1.7.24", "version = 2\noom_score = -999\n", PATH),
        ("1.7.24", f'[plugins."{V2}"]\nsandbox_image = "other"\n', DROP_IN),
    ],
    ids=[
        "1.x: an import replaces the section, so it is edited",
        "2.x: an import that sets the default is edited",
        "an import without CRI settings is left alone",
        "an import without a version has the main file's, and gets none",
    ],
)
def test_the_file_that_takes_precedence_is_edited(version: str, drop_in: str, path: str) -> None:
    result = rewrite(MAIN, version, files={DROP_IN: drop_in}, imports=(DROP_IN,))
    assert result.main.path == path
    assert ("version" in tomllib.loads(result.main.after)) is (path == PATH or "version" in drop_in)
    assert result.changed


def test_an_import_in_another_schema_is_refused() -> None:
    drop_in = f"version = 3\n[plugins.'{V3}'.containerd]\ndefault_runtime_name = 'runc'\n"
    with pytest.raises(UnsupportedHost, match="its importer"):
        rewrite(MAIN, "2.1.9", files={DROP_IN: drop_in}, imports=(DROP_IN,))


@pytest.mark.parametrize(
    ("text", "kubelet", "idle"),
    [
        ('disabled_plugins = ["cri"]\n', None, True),
        ('disabled_plugins = ["cri"]\n', "systemd", False),
        ("version = 2\n", None, False),
        (None, None, False),
    ],
    ids=["docker's own package", "with a kubelet it is needed", "CRI is on", "no file"],
)
def test_containerd_that_only_serves_docker_needs_nothing(text: str | None, kubelet: str | None, idle: bool) -> None:
    facts = engine_facts("containerd", "1.7.24")
    reason = Containerd().idle(host_with(facts, files={PATH: text}, kubelet=kubelet), facts)
    assert (reason is not None) is idle


KEYS = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=8)
SCALARS = st.booleans() | st.integers(-(2**63), 2**63 - 1) | KEYS
TOML = st.recursive(
    SCALARS, lambda inner: st.lists(SCALARS, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=8
)
OTHERS = st.dictionaries(KEYS.filter(lambda k: k not in ("version", "plugins", "disabled_plugins")), TOML, max_size=4)
PLUGINS = st.dictionaries(KEYS, st.dictionaries(KEYS, TOML, max_size=3), max_size=3)
RUNTIMES = st.dictionaries(
    # A handler whose name is written with an escape is refused for 1.x (test_containerd_validate.py).
    st.text("abc.x- ", min_size=1, max_size=8),
    st.just({"runtime_type": "io.containerd.runc.v2"}),
    max_size=2,
)


@settings(max_examples=30, deadline=None)
@given(OTHERS, PLUGINS, RUNTIMES, st.sampled_from(["1.7.24", "2.1.9"]))
def test_any_other_key_keeps_its_value_and_twice_is_once(
    others: dict[str, Any], plugins: dict[str, Any], runtimes: dict[str, Any], version: str
) -> None:
    schema, plugin = (3, V3) if version.startswith("2") else (2, V2)
    before = {"version": schema, **others, "plugins": {**plugins, plugin: {"containerd": {"runtimes": runtimes}}}}
    want = RuntimeSpec(drop_in="none")
    after = rewrite(tomlkit.dumps(before), version, want).main.after
    config = tomllib.loads(after)
    engine = config["plugins"].pop(plugin)["containerd"]
    assert {k: v for k, v in config.items() if k not in ("version", "plugins")} == others
    assert config["plugins"] == plugins
    assert engine["default_runtime_name"] == "nvidia"
    assert {k: v for k, v in engine["runtimes"].items() if k in runtimes} == runtimes
    assert rewrite(after, version, want).main.after == after


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from([
    "version = 2", f'[plugins."{V2}"]', f'[plugins."{V2}".containerd]', f'[plugins."{V2}".containerd.runtimes]',
    f'[plugins."{V2}".containerd.runtimes.runc]', f'[plugins."{V2}".containerd.runtimes.nvidia.options]', "[plugins]",
    f'"{V2}".containerd.runtimes.runc.runtime_type = "x"', "containerd.runtimes.kata.a = 1", "runtimes.runc.b = 2",
    'containerd = { default_runtime_name = "runc" }', "runtimes = { runc = {} }", "options = { SystemdCgroup = true }",
    'default_runtime_name = "runc"', "[grpc]", "# a comment", "", f'plugins."{V2}".x = 1', "[[a.b]]",
    "BinaryName = 'x'",
]), max_size=8))  # fmt: skip
def test_any_file_is_either_edited_right_or_refused(lines: list[str]) -> None:
    try:
        result = rewrite("\n".join(["version = 2", *lines]))
    except GpunodeError:
        return
    engine = tomllib.loads(result.main.after)["plugins"][V2]["containerd"]
    assert engine["default_runtime_name"] == "nvidia"
    assert {"nvidia", "runc"} <= set(engine["runtimes"])
    assert rewrite(result.main.after).main.after == result.main.after


def test_validation_dumps_the_candidate_with_the_daemons_own_binary() -> None:
    validate = Containerd().validate(engine_facts("containerd", "2.1.9", binary="/usr/local/bin/containerd"), PATH)
    assert validate is not None
    assert validate.argv[3:] == ("/usr/local/bin/containerd", PATH, PATH, "{candidate}")


def test_undo_restarts_and_asks_for_the_old_default() -> None:
    facts = engine_facts("containerd", "2.1.9", effective_default="crun")
    restart, verify = Containerd().undo(facts, rewrite("version = 2\n"))
    assert isinstance(restart, Run)
    assert restart.description == "systemctl restart containerd.service"
    assert isinstance(verify, Run)
    assert verify.argv[3:6] == ("containerd", "/run/containerd/containerd.sock", "crun")


def test_undo_expects_no_health_where_there_was_none() -> None:
    facts = engine_facts("containerd", "1.7.24", effective_default=None, cri_error="invalid plugin config")
    assert len(Containerd().undo(facts, rewrite("version = 2\n"))) == 1


def test_undo_of_a_step_that_wrote_nothing_only_sees_to_it_that_the_daemon_runs() -> None:
    right = rewrite(rewrite("version = 2\n").main.after)
    assert not right.changed
    (revive,) = Containerd().undo(engine_facts("containerd", "1.7.24"), right)
    assert isinstance(revive, Run)
    assert revive.description == "start containerd.service again if it is down"


def test_the_settings_of_a_default_that_is_replaced_settle() -> None:
    """crun says no SystemdCgroup and runc does: nvidia has crun's for good, and a second run does not take runc's."""
    runtimes = f'[plugins."{V2}".containerd.runtimes'
    text = (
        f'version = 2\n[plugins."{V2}".containerd]\ndefault_runtime_name = "crun"\n'
        f'{runtimes}.crun]\nruntime_type = "io.containerd.runc.v2"\n'
        f'{runtimes}.runc]\nruntime_type = "io.containerd.runc.v2"\n{runtimes}.runc.options]\nSystemdCgroup = true\n'
    )
    after = rewrite(text).main.after
    assert "SystemdCgroup = false" in after
    assert not rewrite(after).changed
