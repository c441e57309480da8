"""Hosts that answer with values no machine has: unknown, or the project's own error; never an internal one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from gpunode.apply.commands.detached import attach
from gpunode.apply.files import put_file
from gpunode.apply.journal.entries import Journal, parse_journal
from gpunode.apply.journal.history import history
from gpunode.apply.journal.past import _one
from gpunode.apply.lock import Owner, is_stale, parse_owner
from gpunode.apply.script import Host
from gpunode.cli.app import main
from gpunode.errors import StepFailed, TransportError
from gpunode.facts.collect import assemble
from gpunode.facts.wire import Section, Sections, decode, encode, file_facts
from gpunode.model.action import PutFile
from gpunode.model.facts import HostFacts
from gpunode.transport.base import Completed

MANY = "9" * 5000
HOSTS = Path(__file__).parent.parent.parent / "examples" / "hosts"
ODD = ("", "-1", "²", "٥٨٠.١٢٦.٢٠", "\udcff", MANY, "0x", "x", "[]", "null")
Change = Callable[[Sections], Sections]


def whole(section: str, text: str, rc: int = 0) -> Change:
    return lambda sections: Sections({**sections.commands, section: Section(text and f"{text}\n", rc)}, sections.files)


def file(path: str, text: str) -> Change:
    return lambda sections: Sections(sections.commands, {**sections.files, path: file_facts(path, text)})


def both(first: Change, second: Change) -> Change:
    return lambda sections: second(first(sections))


def stream(*changes: Change) -> bytes:
    """A recorded host whose GPU, driver and docker are in order, and what was changed of it."""
    sections = decode((HOSTS / "debian12-ready" / "facts.txt").read_bytes())
    for change in changes:
        sections = change(sections)
    return encode(sections)


@pytest.fixture(autouse=True)
def _state_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))


VERBS = (["detect"], ["plan", "-v", "--driver", "580"], ["plan", "--json"], ["check"], ["runtime", "show"])


def every_verb(recording: bytes, directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = directory / "facts.txt"
    path.write_bytes(recording)
    for words in VERBS:
        code = main([*words, "--recorded", str(path)])
        captured = capsys.readouterr()
        assert "internal error" not in captured.out + captured.err, (words, captured.err[-500:])
        assert code in range(10), words


ROWS: dict[str, Change] = {
    **{f"a driver of version {v[:12]!a}": whole("modinfo", f"version: {v}") for v in ODD},
    **{f"a module of version {v[:12]!a}": whole("driver_modules", f"nvidia {v} live {v}") for v in ODD},
    **{f"docker says {v[:12]!a}": whole("docker:info", v) for v in ODD},
    **{f"nvidia-smi says {v[:12]!a}": whole("smi", v) for v in ODD},
    "docker says brackets": whole("docker:info", "[" * 100_000),
    "docker says objects": whole("docker:info", '{"Runtimes":' * 3000 + "1" + "}" * 3000),
    "docker's default is a list": whole("docker:info", '{"DefaultRuntime": [], "Runtimes": 3}'),
    "docker's default is half a pair": whole("docker:info", '{"DefaultRuntime": "\\ud800"}'),
    "brackets in daemon.json": file("/etc/docker/daemon.json", "[" * 100_000),
    "half a pair in daemon.json": file("/etc/docker/daemon.json", '{"default-runtime": "\\ud800"}'),
    "a daemon.json of one number": file("/etc/docker/daemon.json", MANY),
    "processes without numbers": whole("processes", f"² dockerd\n١ containerd\n-1 crio\n{MANY} k3s"),
    "units with odd numbers": whole("services", "Id=docker.service\nMainPID=²\nNRestarts=" + MANY),
    "kernels of digits": whole("kernel_trees", MANY + "|1|1\n²|1|1\n-|1|1"),
    "GRUB starts digits": whole("next_boot", "saved_entry=" + MANY),
    "a compiler of 5000 digits": whole("kernel_version", "Linux version 6 (gcc-12 " + MANY + ".1)"),
    "device numbers": whole("devices", f"crw-rw-rw- 1 0 0 {MANY}, ² Nov 21 14:00 /dev/nvidia0"),
    "nvidia-uvm's number": whole("proc_devices", MANY + " nvidia-uvm"),
    "a journal of brackets": whole("journal", f'{"[" * 100_000}\n{{"kind": "step-begin"}}\n[]\n"x"\n{MANY}'),
    "packages of odd versions": whole("dpkg", "\n".join(f"nvidia-open\t{v}\tamd64\tii" for v in ODD)),
    "no packages, one odd line": whole("dpkg", "\t\t\t"),
    "a CDI spec of brackets": both(
        file("/etc/cdi/nvidia.yaml", "{" * 9999), whole("cdi", "/etc/cdi/nvidia.yaml")
    ),
    "secure boot is a word": whole("security", "uefi=²\nsecure_boot=yes\nselinux=9\nlockdown=["),
    "no release at all": whole("os", "ID=debian\nVERSION_ID=" + MANY),
    "a release in other digits": whole("os", "ID=ubuntu\nVERSION_ID=٢٤.٠٤"),
}  # fmt: skip


@pytest.mark.parametrize("change", ROWS.values(), ids=ROWS)
def test_no_answer_of_a_host_is_an_internal_error(
    change: Change, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    every_verb(stream(change), tmp_path, capsys)


GPU = "0000:41:00.0|0x10de|0x030200|0x2330|0x10de|0x16c1|16|16|32|32|0|active|nvidia|de1030|0x0 0x0 0x0"


@pytest.mark.parametrize("field", [1, 2, 3, 5, 6, 10, 14])
@pytest.mark.parametrize("word", ["", "²", MANY, "0xzzzz", "0x-1", "2330 "], ids=ascii)
def test_a_gpu_with_an_odd_field_is_no_internal_error(
    word: str, field: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fields = GPU.split("|")
    fields[field] = word
    every_verb(stream(whole("pci", "|".join(fields))), tmp_path, capsys)


def facts(*changes: Change) -> HostFacts:
    return assemble(stream(*changes), "host")


def test_what_is_odd_is_unknown_and_named() -> None:
    host = facts(
        whole("pci", "0000:41:00.0|0x10de|0x030200|0xzzzz|-|-|-|-|-|-|-|-|-|-|-"), whole("docker:info", "[" * 9999)
    )
    assert host.pci == ()
    assert "four hexadecimal digits" in host.unread["pci"]
    assert "nested too deeply" in host.unread["runtimes"]


def test_an_odd_number_among_good_ones_is_unknown_alone() -> None:
    row = "0000:41:00.0|0x10de|0x030200|0x2330|-|-|²|16|-|-|-1|-|-|-|0xffff 0x0000 0x0"
    (model,) = facts(whole("pci", row)).pci
    assert (model.device, model.link_width, model.link_width_max, model.numa_node, model.bar1_bytes) == (
        "2330",
        None,
        16,
        -1,
        None,
    )


class Says:
    """A host whose every script answers the same."""

    target = "host"

    def __init__(self, answer: bytes) -> None:
        self.answer = answer

    def run(self, script: str, *, stdin: bytes = b"", timeout_s: float) -> Completed:
        return Completed(0, self.answer, b"", 0.0)

    def reconnect(self) -> None: ...

    def close(self) -> None: ...


WAITED = (
    *("ended", "ended  12", "ended ² 12", "running", "running x", "running -1", "ended 0", "odd", "ended 0 1 2"),
    *("running ١", f"vanished {MANY}"),
)


@pytest.mark.parametrize("words", WAITED, ids=ascii)
def test_a_running_command_that_answers_nonsense_is_a_failed_step(words: str) -> None:
    with pytest.raises(StepFailed, match="makes no sense"):
        attach(Host(Says(words.encode() + b"\n")), "r1-1", limit_s=1, on_output=print, pause=lambda _: None)


@pytest.mark.parametrize("line", ["", "[]", "null", "{}", "[" * 9999, '{"path": "/x"}', MANY,
                                  '{"path": "/x", "before": "a", "after": "b", "uid": "²"}',
                                  '{"path": "/x", "before": "a", "after": "b", "mode": "9"}'])  # fmt: skip
def test_a_written_file_that_is_answered_with_nonsense_is_a_failed_step(line: str) -> None:
    with pytest.raises(StepFailed, match="makes no sense"):
        put_file(Host(Says(f"written {line}\n".encode())), Journal("r1"), "s", PutFile("/etc/x", "x"))


@pytest.mark.parametrize(
    "answer", [b"644 9\nab", b"644 -1\nab", "644 ²\nab".encode(), b"999 1\nab", b"\n", b"644", b"x 1\nab"]
)
def test_an_old_file_that_is_cut_off_is_a_lost_host(answer: bytes) -> None:
    with pytest.raises(TransportError, match="truncated"):
        _one("/etc/x", answer)


@pytest.mark.parametrize("text", ["", "[]", "null", '"x"', "[" * 100_000, '{"host": 1}', MANY, '{"pid": {}}', "\udcff"])
def test_a_lock_of_nobody_has_no_owner(text: str) -> None:
    assert parse_owner(text) is None


@pytest.mark.parametrize("pid", ["-1", "1e9", '"1"', "true", "9" * 40, "0", "null"])
def test_a_lock_with_a_pid_no_process_has_is_given_up_when_its_holder_was_ours(pid: str) -> None:
    ours = Owner("here", 1, "t", pids="boot 1")
    holder = parse_owner(f'{{"host": "here", "token": "x", "pid": {pid}, "pids": "boot 1"}}')
    assert holder is not None
    assert is_stale(holder, 0, ours, lambda pid: pid > 0)


def test_a_journal_of_nonsense_is_passed_over_and_its_good_lines_count() -> None:
    good = {"kind": "run-begin", "run": "r1", "before": {}}
    step = {"kind": "step-begin", "run": "r1", "step": "s"}
    wrote = {"kind": "file", "run": "r1", "step": "s", "path": "/etc/caf\udce9", "before": "absent", "after": "b"}
    odd = ["[" * 100_000, MANY, "null", '{"kind": ', '"\\ud800"', json.dumps({**wrote, "uid": []}),
           json.dumps({**wrote, "uid": "9" * 99}), json.dumps({**wrote, "mode": "rwx"})]  # fmt: skip
    text = "\n".join([json.dumps(good), *odd, json.dumps(step), *odd, json.dumps(wrote), *odd])
    found = history(parse_journal(text))
    assert list(found.runs) == ["r1"]
    assert [c.written.path for c in found.changes["/etc/caf\udce9"]] == ["/etc/caf\udce9"]
