"""daemon.json before and after, and the commands that make dockerd take it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpunode.errors import ConfigFileError, GpunodeError, UnsupportedHost
from gpunode.model.plan import PutFile, RemoveFile, Run
from gpunode.model.spec import RuntimeSpec
from gpunode.runtimes.base import Rewrite
from gpunode.runtimes.docker import Docker
from tests.runtimes.hosts import PATHS, engine_facts, host_with

PAIRS = Path(__file__).parent / "docker"
PATH = PATHS["docker"]
DEFAULT, NO_DEFAULT, CDI = RuntimeSpec(), RuntimeSpec(default=False), RuntimeSpec(cdi=True)
WANTED = {"no-default": NO_DEFAULT, "cdi": CDI}
VERSIONS = {"cdi-is-default-on-28": "28.5.2", "cdi-was-off": "28.5.2"}


def rewrite(
    text: str | None, version: str | None = "26.1.5", want: RuntimeSpec = DEFAULT, **observed: object
) -> Rewrite:
    facts = engine_facts("docker", version, **observed)
    return Docker().rewrite(host_with(facts, files={PATH: text}), facts, want)


@pytest.mark.parametrize("name", sorted(p.name.removesuffix(".before.json") for p in PAIRS.glob("*.before.json")))
def test_file_before_and_after(name: str) -> None:
    before = (PAIRS / f"{name}.before.json").read_text(encoding="utf-8")
    after = (PAIRS / f"{name}.after.json").read_text(encoding="utf-8")
    want = next((w for prefix, w in WANTED.items() if name.startswith(prefix)), RuntimeSpec())
    version = VERSIONS.get(name, "26.1.5")
    assert rewrite(before, version, want).main.after == after
    assert rewrite(after, version, want).main.after == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, '{\n    "runtimes": {\n'),
        ("", '{\n    "runtimes": {\n'),
        (" \n\t\r\n", '{\n    "runtimes": {\n'),
        ('\ufeff{"debug": true}', '{"debug": true, "runtimes": {'),
        ('{\r\n  "debug": true\r\n}\r\n', '{\r\n  "debug": true,\r\n  "runtimes": {\r\n    "nvidia": {\r\n'),
        ('{"labels": ["caf\udce9"]}', '{"labels": ["caf\udce9"], "runtimes": {'),
    ],
    ids=["absent", "empty", "only blanks", "byte order mark goes", "CRLF stays", "a Latin-1 byte stays"],
)
def test_odd_bytes(before: str | None, after: str) -> None:
    assert rewrite(before).main.after.startswith(after)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ('{"debug": true,}', f"{PATH}:1:1"),  # 3.13 points at the comma (15), older ones behind it (16)
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
    ],
    ids=[
        "trailing comma", "missing comma", "comment", "two objects", "cut off", "a list", "a string", "NaN",
        "infinity, though a string says NaN", "duplicate key", "duplicate key deep inside", "runtimes is a list",
        "a runtime is a string", "default is a number", "features is a boolean", "wrong case", "NUL",
        "raw control character", "two hundred thousand brackets",
    ],
)  # fmt: skip
def test_a_file_that_dockerd_would_misread_is_refused_with_its_place(text: str, where: str) -> None:
    with pytest.raises(ConfigFileError) as refused:
        rewrite(text)
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
    ],
    ids=["snap", "flag sets another default", "flag and value apart", "CDI on 20.10"],
)
def test_an_engine_that_must_not_be_touched(observed: dict[str, Any], want: RuntimeSpec, problem: str) -> None:
    version = observed.pop("version", "26.1.5")
    with pytest.raises(UnsupportedHost, match=problem):
        rewrite("{}", version, want, **observed)


def test_what_the_flags_say_already_is_not_said_again() -> None:
    flags = ("--default-runtime=nvidia", "--add-runtime=nvidia=/usr/bin/nvidia-container-runtime")
    assert not rewrite("{}\n", flags=flags).changed
    assert not rewrite(None, flags=flags).changed


def test_the_plan_line_names_each_change() -> None:
    assert rewrite('{"features": {"x": true}}', want=CDI).added == (
        "+ runtimes.nvidia",
        "default-runtime runc → nvidia",
        "+ features.cdi",
    )


KEYS = st.text(st.characters(codec="utf-8"), max_size=12)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | KEYS
JSON = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3))
OURS = ("runtimes", "default-runtime", "features")
OTHERS = st.dictionaries(KEYS.filter(lambda k: k.lower() not in OURS), JSON, max_size=5)
INDENTS = st.sampled_from([None, 0, 1, 2, 4, "\t"])


@settings(max_examples=300, deadline=None)
@given(OTHERS, st.dictionaries(KEYS.filter(lambda k: k != "nvidia"), st.just({"path": "/x"})), INDENTS, st.booleans())
def test_any_other_key_keeps_its_value_and_twice_is_once(
    others: dict[str, Any], runtimes: dict[str, Any], indent: int | str | None, ascii_only: bool
) -> None:
    before = {**others, "runtimes": runtimes} if runtimes else others
    after = rewrite(json.dumps(before, indent=indent, ensure_ascii=ascii_only)).main.after
    config = json.loads(after)
    assert {k: v for k, v in config.items() if k not in OURS} == others
    assert {k: v for k, v in config["runtimes"].items() if k != "nvidia"} == runtimes
    assert config["default-runtime"] == "nvidia"
    assert list(config)[: len(before)] == list(before)
    assert rewrite(after).main.after == after


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet='{}[]",:x1 \n\\tnu', max_size=40))
def test_any_text_is_either_merged_or_refused(text: str) -> None:
    try:
        after = rewrite(text).main.after
    except GpunodeError:
        return
    assert json.loads(after)["default-runtime"] == "nvidia"


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


@pytest.mark.parametrize("version", ["20.10.24", None], ids=["20.10 has no --validate", "unknown version"])
def test_no_validation_where_the_daemon_cannot(version: str | None) -> None:
    assert Docker().validate(engine_facts("docker", version), PATH) is None


def test_undo_says_the_old_default_aloud_and_then_brings_the_old_bytes_back() -> None:
    facts = engine_facts("docker", "28.5.2")
    undo = Docker().undo(facts, rewrite('{"debug": true}'))
    files = [a for a in undo if isinstance(a, PutFile)]
    assert [f.text for f in files] == [
        '{"debug": true, "default-runtime": "runc", "runtimes": {}}',
        '{"debug": true}',
    ]
    assert all(f.any_before for f in files)
    last = undo[-1]
    assert isinstance(last, Run)
    assert last.ok == (0,)
    assert last.argv[3:6] == ("docker", "/run/docker.sock", "runc")


def test_undo_removes_a_file_that_was_not_there() -> None:
    undo = Docker().undo(engine_facts("docker", "28.5.2"), rewrite(None))
    assert [a.path for a in undo if isinstance(a, RemoveFile)] == [PATH]


def test_undo_keeps_a_default_that_the_old_file_named() -> None:
    old = '{"default-runtime": "crun", "runtimes": {"crun": {"path": "/usr/bin/crun"}}}'
    undo = Docker().undo(engine_facts("docker", "28.5.2", effective_default="crun"), rewrite(old))
    assert [a.text for a in undo if isinstance(a, PutFile)] == [old, old]
