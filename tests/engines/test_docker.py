"""daemon.json before and after, and the commands that make dockerd take it."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpunode.engines.base import Removal
from gpunode.engines.daemon import commands
from gpunode.engines.docker.engine import Docker
from gpunode.errors import ConfigFileError, GpunodeError, UnsupportedHost
from gpunode.model.action import PutFile, RemoveFile, Run
from gpunode.model.facts import RuntimeFacts
from gpunode.model.spec import RuntimeSpec
from tests.engines.docker_cases import CDI, DEFAULT, NO_DEFAULT, PATH, rewritten
from tests.engines.hosts import engine_facts, host_with


def test_a_byte_that_is_not_utf8_is_kept_where_docker_takes_it_and_is_named_where_not() -> None:
    latin = '{"labels": ["caf\udce9"]}'
    assert rewritten(latin, "20.10.24").main.after.startswith('{"labels": ["caf\udce9"], "runtimes": {')
    with pytest.raises(ConfigFileError, match="1:17: byte 0xe9 is not UTF-8"):
        rewritten(latin, "26.1.5")


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ('{"debug": true,}', f"{PATH}:1:15: a comma with nothing after it"),
        ('{"dns": ["10.0.0.1" , \n ], "debug": true}', f"{PATH}:1:21: a comma with nothing after it"),
        ('{\n  "debug": true\n  "mtu": 1450\n}', f"{PATH}:3:3: Expecting ',' delimiter"),
        ('{\n  // ours\n  "debug": true\n}', f"{PATH}:2:3"),
        ('{"debug": true} {}', f"{PATH}:1:17: Extra data"),
        ('{"debug": tru', f"{PATH}:1:11"),
        ('[{"debug": true}]', f"{PATH}:1:1: the file must hold one object"),
        ('"nvidia"', f"{PATH}:1:1: the file must hold one object"),
        ('{"mtu": NaN}', f"{PATH}:1:9: NaN is not JSON"),
        ('{"labels": ["NaN"], "mtu": -Infinity}', f"{PATH}:1:28: -Infinity is not JSON"),
        ('{"debug": true,\n "debug": false}', f'{PATH}:2:2: key "debug" stands twice'),
        ('{"log-opts": [{"a": 1, "a": 2}]}', f'{PATH}:1:24: key "a" stands twice'),
        ('{"runtimes": []}', f"{PATH}:1:14: runtimes is a list, and dockerd wants an object"),
        ('{"runtimes": {"nvidia": "x"}}', f"{PATH}:1:25: runtimes.nvidia is a string"),
        ('{"default-runtime": 5}', f"{PATH}:1:21: default-runtime is a number, and dockerd wants a string"),
        ('{"features": true}', f"{PATH}:1:14: features is true or false"),
        ('{"Default-Runtime": "runc"}', "is spelled 'default-runtime'"),
        ("{\x00}", f"{PATH}:1:2"),
        ('{"a": "tab\there"}', f"{PATH}:1:11"),
        ("[" * 200_000, "nested too deeply"),
        ("\udcff\udcfe{\x00}\x00", f"{PATH}:1:1: the file is UTF-16"),
        ('{"runtimes": {"runc": {"path": "/x"}}}', f"{PATH}:1:23: runtimes.runc is a name that dockerd keeps"),
        ('{"runtimes": {"a": {"path": "/x", "runtimeType": "y"}}}', f"{PATH}:1:20: runtimes.a has both a path"),
        ('{"runtimes": {"a": {"path": "/x", "options": {"y": 1}}}}', f"{PATH}:1:20: runtimes.a has options"),
        ('{"runtimes": {"a": {"runtimeType": "y", "runtimeArgs": ["z"]}}}', f"{PATH}:1:20: runtimes.a has runtimeArgs"),
        ('{"runtimes": {"a": {"args": []}}}', f"{PATH}:1:20: runtimes.a has neither a path nor a runtimeType"),
        ('{"runtimes": {"nvidia": {"path": ["x"]}}}', f"{PATH}:1:34: runtimes.nvidia.path is a list"),
        ('{"runtimes": {"nvidia": {"Path": 5}}}', f"{PATH}:1:34: runtimes.nvidia.Path is a number"),
        ('{"runtimes": {"runc": "x"}}', f"{PATH}:1:23: runtimes.runc is a string, and dockerd wants an object"),
        ('{"runtimes": {"a": {"path": "/x", "options": []}}}', f"{PATH}:1:46: runtimes.a.options is a list"),
        ('{"runtimes": {"a": {"path": 7}}}', f"{PATH}:1:29: runtimes.a.path is a number, and dockerd wants a string"),
        ('{"runtimes": {"a": {"path": "/x", "RUNTIMEARGS": "y"}}}', f"{PATH}:1:50: runtimes.a.RUNTIMEARGS is a string"),
        ('{"runtimes": {"a": {"path": "/x", "runtimeArgs": ["y", 5]}}}', "runtimes.a.runtimeArgs holds a number"),
        ('{"features": {"x": 1}}', f"{PATH}:1:20: features.x is a number, and dockerd wants true or false"),
        ('{"features": {"cdi": "true"}}', f"{PATH}:1:22: features.cdi is a string, and dockerd wants true or false"),
    ],
    ids=[
        "trailing comma", "trailing comma in a list, lines apart",
        "missing comma", "comment", "two objects", "cut off", "a list", "a string", "NaN",
        "infinity, though a string says NaN", "duplicate key", "duplicate key deep inside", "runtimes is a list",
        "a runtime is a string", "default is a number", "features is a boolean", "wrong case", "NUL",
        "raw control character", "two hundred thousand brackets",
        "UTF-16", "reserved name", "path and type", "path and options", "type and arguments", "neither path nor type",
        "path is a list", "Path is a number", "runc is a string", "options of another runtime",
        "path of another runtime",
        "arguments in capitals", "an argument is a number", "another feature is a number", "cdi is a string",
    ],
)  # fmt: skip
def test_a_file_that_dockerd_would_misread_is_refused_with_its_place(text: str, where: str) -> None:
    with pytest.raises(ConfigFileError) as refused:
        rewritten(text)
    assert where in refused.value.problem


def test_an_unreadable_file_is_refused() -> None:
    facts = engine_facts("docker", "26.1.5")
    host = host_with(facts, files={})
    unread = type(host.file(PATH))(PATH, unread="permission denied")
    with pytest.raises(ConfigFileError, match="permission denied"):
        Docker().rewrite(type(host)(**{**vars(host), "files": {PATH: unread}}), facts, RuntimeSpec())


@pytest.mark.parametrize(
    ("observed", "want", "problem"),
    [
        ({"snap": True}, RuntimeSpec(), "snap"),
        ({"flags": ("--default-runtime=crun",)}, RuntimeSpec(), "--default-runtime=crun"),
        ({"flags": ("--default-runtime", "crun")}, RuntimeSpec(), "--default-runtime=crun"),
        ({"version": "20.10.24"}, CDI, "docker 20.10.24 has no CDI"),
        ({"user": "ann"}, CDI, r"docker@ann 26\.1\.5 would not find a CDI specification"),
    ],
    ids=["snap", "flag sets another default", "flag and value apart", "CDI on 20.10", "CDI on a rootless 26"],
)
def test_an_engine_that_must_not_be_touched(observed: dict[str, Any], want: RuntimeSpec, problem: str) -> None:
    version = observed.pop("version", "26.1.5")
    with pytest.raises(UnsupportedHost, match=problem):
        rewritten("{}", version, want, **observed)


@pytest.mark.parametrize(
    ("text", "version", "observed"),
    [
        ("{}", "27.4.0", {"user": "ann"}),
        ('{"cdi-spec-dirs": ["/opt/cdi"]}', "26.1.5", {"user": "ann"}),
        ("{}", "26.1.5", {"user": "ann", "flags": ("--cdi-spec-dir=/opt/cdi",)}),
        ("{}", "26.1.5", {}),
    ],
    ids=["27.4 is shown the host's", "a directory of its own", "the same by a flag", "the host's own docker"],
)
def test_a_docker_that_finds_specifications_gets_cdi(text: str, version: str, observed: dict[str, Any]) -> None:
    assert rewritten(text, version, CDI, **observed).changed


@pytest.mark.parametrize("want", [DEFAULT, NO_DEFAULT], ids=["default", "no default"])
def test_a_shim_as_default_is_kept_away_from_docker_20(want: RuntimeSpec) -> None:
    """Its dockerd dies of a nil pointer at the reload: seen with 20.10.24."""
    text = '{"default-runtime": "io.containerd.runc.v2"}'
    with pytest.raises(UnsupportedHost, match=r"not safe to reload with docker 20\.10\.24"):
        rewritten(text, "20.10.24", want)
    assert rewritten(text, "26.1.5", want).changed


def test_a_runtime_type_is_kept_away_from_docker_20() -> None:
    """It knows paths only and would run runc: seen with 20.10.24."""
    text = '{"runtimes": {"nvidia": {"runtimeType": "io.containerd.runc.v2", "options": {"BinaryName": "/x"}}}}'
    with pytest.raises(ConfigFileError, match=r"1:25: runtimes\.nvidia has a runtimeType, which docker 20\.10\.24"):
        rewritten(text, "20.10.24")
    assert rewritten(text, "26.1.5").changed
    assert rewritten(text, None).changed


def test_what_the_flags_set_already_is_not_written_again() -> None:
    flags = ("--default-runtime=nvidia", "--add-runtime=nvidia=/usr/bin/nvidia-container-runtime")
    assert not rewritten("{}\n", flags=flags).changed
    assert not rewritten(None, flags=flags).changed


def test_the_plan_line_names_each_change() -> None:
    assert rewritten('{"features": {"x": true}}', want=CDI).added == (
        "+ runtimes.nvidia",
        "default-runtime runc → nvidia",
        "+ features.cdi",
    )


def test_what_a_reboot_does_to_containers_with_cdi_devices_is_said_where_cdi_is_switched_on() -> None:
    (note,) = [note for note in rewritten("{}", want=CDI).notes if "at boot" in note]
    assert note.startswith("a container with a CDI device does not come back by itself at boot")
    assert not any("at boot" in note for note in rewritten("{}").notes)


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet='{}[]",:x1 \n\\tnu', max_size=40))
def test_any_text_is_either_merged_or_refused(text: str) -> None:
    try:
        after = rewritten(text).main.after
    except GpunodeError:
        return
    assert json.loads(after)["default-runtime"] == "nvidia"
    assert not rewritten(after).changed


@pytest.mark.parametrize(
    ("entry", "observed", "changes"),
    [
        ('{"path": "/opt/ours/nvidia-container-runtime"}', (), ()),
        ('{"path": "/opt/ours/nvidia-container-runtime"}', ("/opt/ours/nvidia-container-runtime",), ("path",)),
        ('{"PATH": "/opt/gone"}', ("/opt/gone",), ("PATH",)),
        ('{"path": "runc"}', (), ("path",)),
        ('{"runtimeType": "io.containerd.runc.v2"}', (), ("options", "BinaryName")),
        ('{"runtimeType": "x.y", "options": {"BinaryName": "/gone"}}', ("/gone",), ("options", "BinaryName")),
    ],
    ids=["there, or not known", "gone from the disk", "gone, in another case", "it is runc", "a shim without",
         "a shim's is gone"],
)  # fmt: skip
def test_a_path_set_manually_is_unchanged_unless_it_leads_nowhere(
    entry: str, observed: tuple[str, ...], changes: tuple[str, ...]
) -> None:
    done = rewritten(f'{{"runtimes": {{"nvidia": {entry}}}}}', missing_binaries=observed)
    value = json.loads(done.main.after)["runtimes"]["nvidia"]
    for key in changes:
        value = value[key]
    assert value == ("/usr/bin/nvidia-container-runtime" if changes else json.loads(entry))
    assert (f"runtimes.nvidia.{'.'.join(changes)}" in " ".join(done.added)) == bool(changes)
    assert any("is not on this host's disk" in note for note in done.notes) == bool(observed)


@pytest.mark.parametrize("version", ["20.10.24", "26.1.5", None])
@pytest.mark.parametrize("old", ['{"default-runtime": "gpu"}', '{"default-runtime": "gpu", "runtimes": {}}'])
def test_a_default_that_is_the_handler_itself_is_made_legal_without_being_asked_for(
    old: str, version: str | None
) -> None:
    """dockerd does not start on the old file, and does on the new one."""
    done = rewritten(old, version, RuntimeSpec(default=False, handler="gpu"))
    assert json.loads(done.main.after)["runtimes"]["gpu"]["path"] == "/usr/bin/nvidia-container-runtime"
    assert "default-runtime names gpu in the file already and is not changed" in done.notes


@pytest.mark.parametrize("entry", ['{"path": "/opt/ours"}', '{"runtimeType": "a.b", "options": {"BinaryName": "/o"}}'])
@pytest.mark.parametrize("asked", ["/opt/asked/nvidia-container-runtime", "/usr/bin/nvidia-container-runtime"])
def test_a_path_that_was_named_replaces_the_one_that_is_there(entry: str, asked: str) -> None:
    done = rewritten(f'{{"runtimes": {{"nvidia": {entry}}}}}', want=RuntimeSpec(path=asked))
    assert done.binaries == (asked,)
    value = json.loads(done.main.after)["runtimes"]["nvidia"]
    assert (value.get("path") or value["options"]["BinaryName"]) == asked
    assert any(f'→ "{asked}"' in one for one in done.added)
    assert not any("keeps the path" in note for note in done.notes)
    assert not rewritten(done.main.after, want=RuntimeSpec(path=asked)).changed


@pytest.mark.parametrize(
    ("asked", "written"), [(None, None), ("/opt/flag", None), ("/opt/asked", "/opt/asked")],
    ids=["no path named", "the same path named", "another path named"],
)  # fmt: skip
def test_a_path_in_the_file_takes_precedence_over_one_given_as_a_flag(asked: str | None, written: str | None) -> None:
    """Seen with dockerd 20.10, 26 and 28: both may stand there, and the file's is in force."""
    done = rewritten("{}", want=RuntimeSpec(path=asked), flags=("--add-runtime", "nvidia=/opt/flag"))
    entry = json.loads(done.main.after).get("runtimes", {}).get("nvidia", {})
    assert (entry.get("path"), done.binaries) == (written, (written or "/opt/flag",))


@pytest.mark.parametrize(
    ("entry", "gone", "binary"),
    [
        ("null", (), "/usr/bin/nvidia-container-runtime"),
        ('{"path": "nvidia-container-runtime"}', (), "nvidia-container-runtime"),
        ('{"Path": "/opt/ours"}', (), "/opt/ours"),
        ('{"path": "/opt/gone"}', ("/opt/gone",), "/usr/bin/nvidia-container-runtime"),
        ('{"runtimeType": "a.b", "options": {"BinaryName": "/opt/ours"}}', (), "/opt/ours"),
    ],
    ids=["ours", "looked up in PATH", "theirs", "theirs is gone", "theirs below a shim"],
)
def test_the_executable_that_must_be_there_is_the_one_the_new_file_names(
    entry: str, gone: tuple[str, ...], binary: str
) -> None:
    assert rewritten(f'{{"runtimes": {{"nvidia": {entry}}}}}', missing_binaries=gone).binaries == (binary,)


@pytest.mark.parametrize(
    ("there", "code"), [(True, 0), (False, 1), (None, 1)], ids=["there", "not executable", "not there"]
)
def test_the_search_for_an_executable_reports_what_is_missing(there: bool | None, code: int, tmp_path: Path) -> None:
    binary = tmp_path / "a runtime"
    if there is not None:
        binary.write_text("#!/bin/sh\n")
        binary.chmod(0o755 if there else 0o644)
    look = commands.is_there(str(binary))
    done = subprocess.run(look.argv, env=dict(look.env), capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert done.stderr.startswith(f"{binary} is not there, or cannot be executed" if code else "")


THEIRS = "/home/alice/.config/docker/daemon.json"


def of_alice(version: str | None = "26.1.5") -> RuntimeFacts:
    facts = engine_facts("docker", version, user="alice", owner="1000:100", binary="/usr/bin/dockerd")
    return replace(facts, config_path=THEIRS)


def test_a_docker_without_root_is_its_users_until_it_is_named() -> None:
    assert "--runtime docker@alice" in (Docker().idle(host_with(of_alice(), files={}), of_alice()) or "")
    rooted = engine_facts("docker", "26.1.5")
    assert Docker().idle(host_with(rooted, files={}), rooted) is None


def test_a_docker_without_root_is_changed_by_its_users_hands() -> None:
    engine = of_alice()
    rewrite = Docker().rewrite(host_with(engine, files={THEIRS: "{}"}), engine, DEFAULT)
    assert rewrite.main.path == THEIRS
    validate = Docker().validate(engine, THEIRS)
    assert validate is not None
    assert validate.argv[0] == "/usr/bin/dockerd"  # by the hands of the file's owner: shell/files/put.sh
    (reload,) = Docker().apply(engine)
    assert isinstance(reload, Run)
    assert (reload.argv, reload.stdin.splitlines()[-1]) == (("sh", "-s", "--", "1000"), 'gpunode_hangup_user "$@"')
    assert Docker().verify(engine, DEFAULT).argv[6] == "uid:1000:100"
    undo = Docker().undo(engine, rewrite)
    assert [a.owner for a in undo if isinstance(a, PutFile)] == ["1000:100", "1000:100"]
    assert not any("gpunode_revive" in a.stdin.splitlines()[-1] for a in undo if isinstance(a, Run))


def test_no_default_leaves_no_default_that_is_nowhere() -> None:
    """dockerd would refuse the reload; with a default asked for it is replaced, and that mends the file."""
    text = '{"default-runtime": "crun"}'
    with pytest.raises(ConfigFileError, match="1:21: default-runtime 'crun' is not among the runtimes"):
        rewritten(text, want=NO_DEFAULT)
    assert rewritten(text, want=NO_DEFAULT, flags=("--add-runtime=crun=/usr/bin/crun",)).changed
    assert rewritten(text).changed


@pytest.mark.parametrize("flags", [("--feature=cdi=false",), ("--feature", "x=true")], ids=["attached", "apart"])
def test_features_given_by_flag_are_not_given_in_the_file_as_well(flags: tuple[str, ...]) -> None:
    with pytest.raises(UnsupportedHost, match="--feature"):
        rewritten("{}", "27.5.1", CDI, flags=flags)
    assert rewritten("{}", "27.5.1", flags=flags).changed
    assert rewritten("{}", "27.5.1", CDI, flags=("--feature=cdi=true",)).main.after.count("cdi") == 0


def test_one_of_several_dockerds_is_not_configured() -> None:
    with pytest.raises(UnsupportedHost) as refused:
        rewritten("{}", pid=900, others=((940, "docker-ci.service"), (950, "")))
    assert refused.value.problem == (
        "several dockerds of root run here: pid 900 (docker.service), pid 940 (docker-ci.service), pid 950"
    )


def test_a_variable_that_may_hold_the_same_option_is_looked_at_first() -> None:
    """A dockerd that runs shows its flags; one that does not would not start again."""
    flags = ("-H", "fd://", "$DOCKER_OPTS")
    with pytest.raises(UnsupportedHost, match=r"dockerd would be started with '\$DOCKER_OPTS'"):
        rewritten("{}", active=False, flags=flags)
    assert rewritten("{}", active=False, flags=flags[:2]).changed
    right = rewritten("{}").main.after
    assert not rewritten(right, active=False, flags=flags).changed


def test_validation_uses_the_daemons_own_flags_but_not_its_sockets() -> None:
    flags = ("-H", "fd://", "--containerd=/run/containerd/containerd.sock", "$DOCKER_OPTS", "--config-file=/etc/d.json")
    facts = engine_facts("docker", "26.1.5", binary="/usr/sbin/dockerd", flags=flags)
    validate = Docker().validate(facts, PATH)
    assert validate is not None
    assert validate.argv == (
        "/usr/sbin/dockerd",
        "--validate",
        "--config-file",
        "{candidate}",
        "--containerd=/run/containerd/containerd.sock",
    )


def test_validation_repeats_no_secret_of_the_daemons_flags() -> None:
    """Every user sees command lines; a clash between flag and file is one whatever the flag's value."""
    flags = (
        *("--log-driver=splunk", "--log-opt", "splunk-token=hush", "--log-opt=splunk-url=https://me:hush@s.lab:8088"),
        *("--http-proxy", "http://me:hush@proxy.lab:3128", "--label", "password=hush"),
        *("--tlskey", "/etc/docker/key.pem", "--storage-driver", "overlay2"),
    )
    validate = Docker().validate(engine_facts("docker", "26.1.5", binary="/usr/sbin/dockerd", flags=flags), PATH)
    assert validate is not None
    assert validate.argv[4:] == (
        *("--log-driver=splunk", "--log-opt", "splunk-token=MASKED", "--log-opt=splunk-url=https://MASKED@s.lab:8088"),
        *("--http-proxy", "http://MASKED@proxy.lab:3128", "--label", "password=MASKED"),
        *("--tlskey", "/etc/docker/key.pem", "--storage-driver", "overlay2"),
    )


@pytest.mark.parametrize("version", ["20.10.24", None], ids=["20.10 has no --validate", "unknown version"])
def test_no_validation_where_the_daemon_cannot(version: str | None) -> None:
    assert Docker().validate(engine_facts("docker", version), PATH) is None


def test_undo_writes_the_old_default_out_and_then_restores_the_old_bytes() -> None:
    facts = engine_facts("docker", "28.5.2")
    undo = Docker().undo(facts, rewritten('{"debug": true}'))
    files = [a for a in undo if isinstance(a, PutFile)]
    assert [f.text for f in files] == [
        '{"debug": true, "default-runtime": "runc", "runtimes": {}}',
        '{"debug": true}',
    ]
    assert all(f.any_before for f in files)
    last = undo[-1]
    assert isinstance(last, Run)
    assert last.ok_codes == (0,)
    assert last.argv[3:6] == ("docker", "/run/docker.sock", "runc")


def test_undo_removes_a_file_that_was_not_there() -> None:
    undo = Docker().undo(engine_facts("docker", "28.5.2"), rewritten(None))
    assert [a.path for a in undo if isinstance(a, RemoveFile)] == [PATH]


def test_undo_keeps_a_default_that_the_old_file_named() -> None:
    old = '{"default-runtime": "crun", "runtimes": {"crun": {"path": "/usr/bin/crun"}}}'
    undo = Docker().undo(engine_facts("docker", "28.5.2", effective_default="crun"), rewritten(old))
    assert [a.text for a in undo if isinstance(a, PutFile)] == [old, old]


@pytest.mark.parametrize(
    ("text", "removal", "rest"),
    [
        (None, Removal("nvidia", "runc"), ""),
        (None, Removal("nvidia", "runc", ""), ""),
        ('{"debug": true}', Removal("nvidia", "runc"), '{"debug": true}'),
        ('{"default-runtime": "crun", "debug": true}', Removal("nvidia", "crun"), None),
        ('{"runtimes": {}}', Removal("nvidia", "runc", '{"runtimes": {}}'), None),
    ],
    ids=["nothing left", "there was no file", "another value is kept", "crun is restored", "as it was spelled"],
)
def test_without_takes_out_what_rewrite_put_in(text: str | None, removal: Removal, rest: str | None) -> None:
    assert Docker().without(PATH, rewritten(text).main.after, removal) == (text if rest is None else rest)
