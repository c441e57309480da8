"""Commands that gpunode advises, which may be pasted into root's shell: nothing in them is anybody else's to run."""

from __future__ import annotations

import fcntl
import os
import re
import shlex
import struct
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from gpunode.advice import by_user, named, typed
from gpunode.apply.script import _advice
from gpunode.catalog.load import load_catalog
from gpunode.checks.registry import REGISTRY, Context, SameNeeds
from gpunode.cli.app import main
from gpunode.editing.unread import refuse_unread
from gpunode.errors import ConfigFileError, GpunodeError
from gpunode.model.facts import HostFacts
from gpunode.model.files import FileFacts
from gpunode.model.past import ABSENT, PastFile
from gpunode.model.report import Finding
from gpunode.model.spec import Spec
from gpunode.offline import attributes, local_file
from gpunode.planner.engines.daemon import by_hand
from gpunode.planner.plan import make_plan
from gpunode.planner.undo.files import commands_to_run
from gpunode.remedy import Remedy, RepairAction, gpunode, setup
from gpunode.render.remedy_text import remedy_text
from gpunode.transport.ssh_config import Hop
from gpunode.transport.ssh_errors import cannot_connect, not_ssh
from tests.checks.hosts import READY
from tests.checks.test_checks import FAULTS, WANT
from tests.planner.undo.test_plan import docker_host, docker_past, past_file, plan, sha

# One of each kind that a shell would read: words, substitutions, both quotes, an end of line, a comment, a redirection.
EVIL = "x y$(touch pwned)`touch pwned`'\"\n; touch pwned #>pwned&"
QUOTED = EVIL.replace("'", "'\"'\"'")  # as it stands inside shlex.quote's single quotes


def unquoted(text: str) -> str:
    """What a shell would act on: `text` without EVIL where it is quoted."""
    return text.replace(QUOTED, "")


def assert_safe(text: str, where: str) -> None:
    assert "touch pwned" not in unquoted(text), f"{where}: {text}"


def words_with_evil(text: str) -> list[str]:
    """The quoted words of `text` that hold EVIL."""
    return [m.group() for m in re.finditer(rf"'(?:[^']|'\"'\"')*{re.escape(QUOTED)}(?:[^']|'\"'\"')*'", text)]


def expand(word: str, directory: Path) -> str:
    """What a shell makes of a word; where it ran anything, `pwned` is in `directory`. PATH is empty: builtins only."""
    done = subprocess.run(
        ["/bin/sh", "-c", f"printf %s {word}"],
        cwd=directory, env={"PATH": "/nonexistent"}, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("value", [EVIL, "$(touch pwned)", "a b", "-rf", "it's", "", "~root", "*", "a\\b", "$HOME"])
def test_a_shell_reads_back_what_was_named(value: str, tmp_path: Path) -> None:
    assert expand(named(value), tmp_path) == value
    assert shlex.split(typed("rm", value)) == ["rm", value]
    assert list(tmp_path.iterdir()) == []


def test_plain_names_look_as_they_are() -> None:
    assert typed("rm", "/etc/cdi/nvidia.yaml") == "rm /etc/cdi/nvidia.yaml"
    assert named("docker.service") == "docker.service"


def spoilt(value: Any, name: str, inside: bool = False) -> Any:
    """`value` with EVIL at the end of every text in its fields of this name; itself where it has none."""
    if isinstance(value, str):
        return value + EVIL if inside else value
    if not inside and name not in names(value):
        return value
    if isinstance(value, (tuple, frozenset)):
        return type(value)(spoilt(v, name, inside) for v in value)
    if isinstance(value, Mapping):
        return {spoilt(k, name, inside): spoilt(v, name, inside) for k, v in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        changed = {f.name: spoilt(getattr(value, f.name), name, inside or f.name == name) for f in fields(value)}
        try:
            return replace(value, **changed)
        except (TypeError, ValueError):  # a field that is no argument, or an enum's text
            return value
    return value


NAMES: dict[int, tuple[Any, frozenset[str]]] = {}  # by the id of a value, which is kept so that no other has it


def names(value: Any) -> frozenset[str]:
    """The names of all fields below `value`, most of which many hosts share."""
    if id(value) not in NAMES:
        NAMES[id(value)] = value, frozenset(_names(value))
    return NAMES[id(value)][1]


def _names(value: Any) -> Iterator[str]:
    if isinstance(value, (tuple, frozenset)):
        yield from (name for v in value for name in names(v))
    elif isinstance(value, Mapping):
        yield from (name for v in value.values() for name in names(v))
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            yield field.name
            yield from names(getattr(value, field.name))


def finding_remedy(id: str, host: HostFacts) -> str:
    found = SameNeeds([REGISTRY[id]]).run(host, Context(WANT, load_catalog()), lambda need: need(host))
    outcome = found[id].outcome
    return outcome.remedy.text if isinstance(outcome, Finding) else ""


def advice_of_plan(host: HostFacts) -> str:
    try:
        made = make_plan(host, Spec(), load_catalog())
    except GpunodeError as error:
        return error.remedy.text
    return "\n".join(made.by_hand)


def hostile(host: HostFacts, tell: Callable[[HostFacts], str]) -> Iterator[str]:
    """What is told of `host`, with one field after the other hostile wherever it stands."""
    for name in sorted(names(host)):
        try:
            text = tell(spoilt(host, name))
        except (ValueError, TypeError, AssertionError, KeyError, AttributeError):
            continue  # facts that facts/ would never have made: its parsers refuse them
        assert_safe(text, f"with a hostile {name}")
        yield text


IDS = sorted({row[0] for row in FAULTS})
# Whose remedies name something of the host, when the rest of its facts is as it should be.
NAMING = (
    *("ctk.repo", "drv.dkms-next", "drv.dkms-running", "drv.headers-running", "pci.count-vs-driver"),
    *("pci.runtime-pm", "rt.cri-disabled", "rt.daemon-restart-safe", "rt.docker-live", "rt.present"),
)


@pytest.mark.parametrize("id", IDS)
def test_no_fact_reaches_a_shell_through_a_remedy(id: str, tmp_path: Path) -> None:
    words: set[str] = set()
    for host in (row[1] for row in FAULTS if row[0] == id):
        for text in hostile(host, lambda bad: finding_remedy(id, bad)):
            words.update(words_with_evil(text))
    assert words or id not in NAMING, "the remedy named nothing hostile: the test stood on an empty stage"
    for word in sorted(words)[:3]:
        assert EVIL in expand(word, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_no_fact_reaches_a_shell_through_a_plan() -> None:
    alone = replace(READY, init="none", runtimes=tuple(replace(e, effective_default="runc") for e in READY.runtimes))
    assert any(advice_of_plan(alone).splitlines()), "there is something to type"
    assert any(words_with_evil(text) for text in hostile(alone, advice_of_plan))


def test_the_rule_sees_what_is_not_quoted() -> None:
    with pytest.raises(AssertionError):
        assert_safe(f"rm /etc/{EVIL}", "here")
    with pytest.raises(AssertionError):
        assert_safe(f'rm "/etc/{EVIL}"', "here")
    assert_safe(f"rm {named('/etc/' + EVIL)}", "here")


def old_file(**more: Any) -> PastFile:
    file = past_file("/etc/docker/daemon.json", "docker.default", before="{}", left="{1}", now="{2}")
    return replace(file, **more)


HOME = "/home/ann/.config/docker/daemon.json"


@pytest.mark.parametrize(
    "more",
    [
        {"path": HOME, "run_as": "1000:1000"},
        {"path": HOME, "run_as": "1000:1000", "now": FileFacts(HOME, "x", sha("x"), symlink="/etc/passwd")},
        {"path": "/srv/daemon.json", "owner": "1000:100"},
        {"path": HOME, "run_as": "1000:1000", "before": ABSENT, "old": None, "backup": ""},
        {"now": FileFacts("/etc/docker/daemon.json", "x", sha("x"), symlink="/home/ann/x")},
    ],
    ids=[
        "a user's",
        "a user's, now a link to passwd",
        "a user's, outside a home",
        "to be removed",
        "root's, now a link",
    ],
)
def test_root_is_never_told_to_write_where_a_user_leads_it(more: dict[str, Any]) -> None:
    said = commands_to_run(old_file(**more))
    assert not re.search(r"(^|[;&|] *)(cp|mv|rm|tee|cat|install) ", said)
    assert "1000" in said or "link" in said


def test_a_users_file_is_removed_with_the_users_rights() -> None:
    said = commands_to_run(old_file(path=HOME, run_as="1000:1000", before=ABSENT, old=None))
    assert shlex.split(said.removesuffix(" removes it")) == [
        *("setpriv", "--reuid", "1000", "--regid", "1000", "--clear-groups", "--"),
        *("rm", HOME),
    ]
    assert by_user("", "rm", "x") == "rm x"


def test_roots_own_file_still_comes_with_its_command() -> None:
    said = commands_to_run(old_file())
    assert said == "cp /var/lib/gpunode/backup/r1/etc/docker/daemon.json /etc/docker/daemon.json restores the old one"


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"run_as": "1000:1000"},
        {"before": ABSENT, "old": None},
        {"now": FileFacts("/x", "x", sha("x"), symlink=f"/home/{EVIL}")},
    ],
    ids=["a copy", "a user's", "a removal", "a link"],
)
def test_undos_words_are_quoted(more: dict[str, Any]) -> None:
    said = commands_to_run(old_file(path=f"/etc/{EVIL}", backup=f"/var/lib/gpunode/backup/{EVIL}", **more))
    assert_safe(said, "undo")
    assert words_with_evil(said)


def test_undos_plan_leaves_a_users_link_to_its_user() -> None:
    """The row as it was found: the user replaced their daemon.json by a link, and undo told root to cp over it."""
    now = FileFacts(HOME, "root:x:0:0\n", sha("root:x:0:0\n"), 0o644, symlink="/etc/passwd")
    file = replace(past_file(HOME, "docker@ann.default", before="{}", left="{1}", now="x"), now=now, run_as="1000:1000")
    made = plan(docker_host(), docker_past(file))
    said = " ".join(kept.text for kept in (*made.kept, *(made.undo.left if made.undo else ())))
    assert "daemon.json" in said
    assert not re.search(r"\bcp ", said)


def test_a_users_own_dockerd_is_not_started_by_root() -> None:
    engine = replace(READY.runtimes[0], user="ann", owner="1000:1000", binary="/home/ann/bin/dockerd", pid=4711)
    said = by_hand(READY, engine)
    assert "/home/ann/bin/dockerd" not in said
    assert "ann" in said


@pytest.mark.parametrize("why", ["a link to x, which is missing", "it is a directory", "permission denied", "a socket"])
def test_a_file_that_cannot_be_read_is_named_in_quotes(why: str) -> None:
    with pytest.raises(ConfigFileError) as caught:
        refuse_unread(f"/etc/{EVIL}", why)
    assert_safe(caught.value.remedy.text, why)
    assert "make the file that the link points to" not in caught.value.remedy.text, "it leads where its owner wants"


def test_ssh_is_told_quoted() -> None:
    hop = replace(some_hop(), user=EVIL)
    for error in (cannot_connect("t", hop, OSError("x")), not_ssh("t", hop, ValueError("x"))):
        assert_safe(error.remedy.text, "ssh")
        assert words_with_evil(error.remedy.text)


def test_the_hosts_of_a_remedy_are_quoted() -> None:
    again = Remedy(RepairAction.NONE, setup(), "; ", gpunode("plan"))
    assert remedy_text(again, ("gpu01", "gpu02")) == "gpunode setup --ssh 'gpu[01-02]'; gpunode plan --ssh 'gpu[01-02]'"
    assert remedy_text(again, ("ann@gpu07:2222",)).startswith("gpunode setup --ssh ann@gpu07:2222; ")
    said = remedy_text(again, (f"gpu07{EVIL}",))
    assert_safe(said, "check")
    assert len(words_with_evil(said)) == 2


def some_hop() -> Hop:
    nothing: dict[str, Any] = dict.fromkeys((f.name for f in fields(Hop)), ())
    return Hop(**{**nothing, "host": "gpu07", "user": "root", "port": 22})


SET = 0x40086602  # FS_IOC_SETFLAGS


@contextmanager
def immutable(path: Path, bit: int = 0x10) -> Iterator[None]:
    """`path` with an attribute; skips where this file system, or this user, has none."""
    handle = os.open(path, os.O_RDONLY)
    try:
        flags = struct.unpack("L", fcntl.ioctl(handle, attributes.FS_IOC_GETFLAGS, struct.pack("L", 0)))[0]
        fcntl.ioctl(handle, SET, struct.pack("L", flags | bit))
    except OSError as error:
        os.close(handle)
        pytest.skip(f"no attributes can be set here: {error}")
    try:
        yield
    finally:
        fcntl.ioctl(handle, SET, struct.pack("L", flags))
        os.close(handle)


@pytest.mark.parametrize("directory", [False, True], ids=["the file", "its directory"])
def test_an_immutable_file_is_answered_with_chattr_and_not_with_root(
    tmp_path: Path, directory: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "etc" / "daemon.json"
    config.parent.mkdir()
    config.write_text("{}\n")
    held = config.parent if directory else config
    with immutable(held):
        assert main(["runtime", "configure", "docker", "--config", str(config)]) == 1
    said = "".join(capsys.readouterr().err.split())
    assert f"lsattr-d{held}showsi(immutable)" in said
    assert f"chattr-i{held}" in said
    assert "sudo" not in said
    assert config.read_text() == "{}\n"


@pytest.mark.parametrize(
    ("letter", "euid", "said", "never"),
    [
        ("i", 0, "chattr -i", "as root"),
        ("a", 0, "chattr -a", "as root"),
        ("i", 1000, "chattr -i", "as root"),
        (None, 0, "lsattr -d", "as root"),
        (None, 1000, "as the file's owner, or as root", "chattr"),
    ],
    ids=["immutable", "append only", "immutable, without root", "root without a reason", "a stranger's file"],
)
def test_eperm_is_answered_by_its_cause(
    letter: str | None, euid: int, said: str, never: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attributes, "attribute", lambda path: letter)
    monkeypatch.setattr(os, "geteuid", lambda: euid)
    remedy = attributes.not_permitted(f"/etc/{EVIL}/daemon.json")
    assert said in remedy
    assert never not in remedy
    assert_safe(remedy, "EPERM")


def test_on_a_host_eperm_names_lsattr_and_not_root() -> None:
    said = _advice("mv: cannot move '/x' to '/y': Operation not permitted").text
    assert "lsattr -d" in said
    assert "chattr -i" in said
    assert "as root" not in said


def test_no_local_remedy_sends_root_to_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    for number in (1, 13):
        assert "sudo" not in local_file._remedy("/nosuch/file", number)
