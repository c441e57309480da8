"""check over several hosts: what only shows in a fleet, in every format, and hosts that were not reached by id."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpunode.checks.fleet import ALONE, VERSIONS
from gpunode.cli import hosts as hosts_of_cli
from gpunode.cli.app import main
from gpunode.cli.options.groups import HostOptions
from gpunode.cli.verbs.check_watch import watch
from gpunode.errors import TransportError
from gpunode.facts.recordings import load_recording
from gpunode.fleet.host import Host
from gpunode.transport.base import Completed, HostKeyRefused, NotReached, Way
from tests.render.exposition import read_metrics

STREAM = load_recording(Path(__file__).parents[2] / "examples" / "hosts" / "debian12-ready")
OLD_TOOLKIT = STREAM.replace(b"CLI version 1.20.0", b"CLI version 1.19.0")
SECRET = "correct horse"
WAY = Way("ann", "ssh-ed25519 SHA256:abc", "/root/.ssh/known_hosts:3", True, True, 0.0, 0.0)
CHANGED = HostKeyRefused("h9: the host key has changed", evidence="it shows ssh-rsa SHA256:x", remedy="find out why")
WANTS_PASSWORD = NotReached("h9: sudo needs a password", evidence="it answered 'a password is required'", remedy="r")


class Faked:
    """A host over SSH whose probe answers with `stream`, by a clock that is `ahead_s` ahead; or fails with `error`."""

    def __init__(self, target: str, stream: bytes = STREAM, ahead_s: float = 0, error: TransportError | None = None):
        self.target, self._stream, self._ahead_s, self._error = target, stream, ahead_s, error
        self.hung_up = 0

    def run(self, script: str, *, stdin: bytes = b"", timeout_s: float) -> Completed:
        if self._error:
            raise self._error
        now = time.time()
        clock = f"@ clock rc=0\n|epoch={int(now + self._ahead_s)}\n|begun=100.00\n|ended=101.00\n@end\n"
        stream = self._stream.removesuffix(b"@end\n") + clock.encode()
        return Completed(0, stream, b"", 1.0, way=replace(WAY, sent_at=now - 0.1, answered_at=now + 1.1))

    def reconnect(self) -> None:
        self.hung_up += 1

    def close(self) -> None: ...


Check = Callable[..., tuple[int, str]]


@pytest.fixture
def check(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Check:
    """check(hosts, *words) -> exit code and stdout, as `gpunode check --ssh ...` has them."""

    def run(hosts: Sequence[Faked], *words: str) -> tuple[int, str]:
        monkeypatch.setattr(hosts_of_cli, "_hosts", lambda options, *, as_root: tuple(map(Host, hosts)))
        code = main(["check", "--ssh", ",".join(one.target for one in hosts), *words])
        out, err = capsys.readouterr()
        assert SECRET not in out + err
        assert "internal error" not in out + err
        return code, out

    return run


def three() -> tuple[Faked, ...]:
    return Faked("h1"), Faked("h2", OLD_TOOLKIT), Faked("h3")


def rows(host: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in host["checks"]}


def test_json_has_the_comparison_and_what_was_seen(check: Check) -> None:
    _, out = check(three(), "--json", "--only", "fleet.*")
    first, second, third = json.loads(out)["hosts"]
    found = rows(second)[VERSIONS]
    assert (found["outcome"], found["severity"], found["fix"]["by_hand"]) == ("finding", "warning", "packages")
    assert found["summary"] == "toolkit 1.19.0, where 2 of 3 hosts with the same GPU have 1.20.0"
    assert found["evidence"] == "toolkit: 1.20.0 on h1, h3 / 1.19.0 on h2"
    for host in (first, third):
        assert rows(host)[VERSIONS]["outcome"] == "pass"
        assert "toolkit 1.20.0 (2 hosts)" in rows(host)[VERSIONS]["evidence"]
    for id in ("fleet.clock-skew", "fleet.hostkey", "fleet.ssh-sudo"):
        assert rows(first)[id]["outcome"] == "pass"
        assert rows(first)[id]["evidence"]
    assert "ssh-ed25519 SHA256:abc" in rows(first)["fleet.hostkey"]["evidence"]


def test_text_names_the_host_that_differs(check: Check) -> None:
    _, out = check(three(), "--only", "fleet.*", "-v")
    assert f"WARN  h2   {VERSIONS}" in out
    assert "fleet.hostkey: ssh-ed25519 SHA256:abc, as in /root/.ssh/known_hosts:3" in " ".join(out.split())


@pytest.mark.parametrize(("form", "quoted"), [("junit", 'hostname="h2"'), ("nvsentinel", '"isFatal": false')])
def test_every_format_has_it_on_the_hosts_own_report(check: Check, form: str, quoted: str) -> None:
    _, out = check(three(), "--format", form, "--only", "fleet.*")
    assert quoted in out
    assert out.count("toolkit 1.19.0, where 2 of 3 hosts") == 1


def test_prometheus_has_it_by_host(check: Check) -> None:
    _, out = check(three(), "--format", "prometheus")
    assert {host: statuses(out, host)[VERSIONS] for host in ("h1", "h2", "h3")} == {"h1": 0, "h2": 1, "h3": 0}


def statuses(text: str, host: str) -> dict[str, float]:
    """id -> gpunode_check_status of this host."""
    found = {}
    for (name, pairs), value in read_metrics(text).items():
        labels = dict(pairs)
        if name == "gpunode_check_status" and labels["host"] == host:
            found[labels["id"]] = value
    return found


def test_strict_counts_it(check: Check) -> None:
    assert check(three(), "--only", VERSIONS)[0] == 0
    assert check(three(), "--only", VERSIONS, "--strict")[0] == 9


def test_it_can_be_left_out_weighed_and_accepted(check: Check, tmp_path: Path) -> None:
    _, out = check(three(), "--json", "--skip", VERSIONS)
    left = rows(json.loads(out)["hosts"][1])[VERSIONS]
    assert left["left_out"]
    assert "it found (warning): toolkit 1.19.0" in left["reason"]
    spec = tmp_path / "spec.yaml"
    spec.write_text(
        f"severity:\n  {VERSIONS}: error\nacknowledge:\n"
        f"  - {{id: {VERSIONS}, reason: canary, expires: 2999-12-31}}\n"
        "  - {id: os.swap, reason: r, expires: 2999-12-31}\n"
    )
    _, out = check(three(), "--json", "--spec", str(spec))
    first, second, _ = json.loads(out)["hosts"]
    found = rows(second)[VERSIONS]
    assert (found["severity"], found["acknowledged"]["reason"]) == ("error", "canary")
    assert [text.partition(":")[0] for text in second["idle_acknowledgements"]] == ["os.swap"]
    assert sorted(text.partition(":")[0] for text in first["idle_acknowledgements"]) == [VERSIONS, "os.swap"]


def test_a_line_that_is_printed_at_once_has_no_comparison_and_one_in_a_file_has_it(
    check: Check, tmp_path: Path
) -> None:
    code, out = check(three(), "--format", "jsonl", "--only", VERSIONS, "--strict")
    assert code == 0
    for line in out.splitlines():
        assert (row := rows(json.loads(line))[VERSIONS])["outcome"] == "not-applicable"
        assert row["reason"] == ALONE
    file = tmp_path / "hosts.jsonl"
    code, _ = check(three(), "--format", "jsonl", "--only", VERSIONS, "--strict", "--output", str(file))
    assert code == 9
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [rows(line)[VERSIONS]["outcome"] for line in lines] == ["pass", "finding", "pass"]


def test_a_clock_that_is_off_is_a_warning_of_its_host(check: Check) -> None:
    _, out = check((Faked("h1"), Faked("h2", ahead_s=60)), "--json")
    first, second = (rows(host)["fleet.clock-skew"] for host in json.loads(out)["hosts"])
    assert first["outcome"] == "pass"
    assert (second["outcome"], second["severity"]) == ("finding", "warning")
    assert "s ahead of this machine's" in second["summary"]


# ---- hosts without a report


@pytest.mark.parametrize(
    ("error", "id"), [(CHANGED, "fleet.hostkey"), (WANTS_PASSWORD, "fleet.ssh-sudo"), (TransportError("odd"), None)]
)
def test_the_error_of_a_host_names_the_check(check: Check, error: TransportError, id: str | None) -> None:
    fleet = (*three(), Faked("h9", error=error))
    _, out = check(fleet, "--json")
    *reached, unread = json.loads(out)["hosts"]
    assert (unread["code"], unread["problem"], unread["check_id"]) == (3, error.problem, id)
    assert all("check_id" not in host for host in reached)
    assert rows(reached[1])[VERSIONS]["outcome"] == "finding", "the others are compared all the same"

    _, out = check(fleet, "--format", "jsonl")
    assert {line["target"]: line.get("check_id") for line in map(json.loads, out.splitlines())}["h9"] == id

    _, out = check(fleet, "--format", "junit")
    case = f'classname="gpunode.fleet" name="{id}"' if id else 'classname="gpunode" name="report"'
    assert f"<testcase {case}>\n      <error " in out

    _, out = check(fleet, "--format", "prometheus")
    assert statuses(out, "h9") == ({id: 2} if id else {})

    _, out = check(fleet)
    assert (f"check     {id}" in out) == (id is not None)

    _, out = check(fleet, "--format", "nvsentinel")
    assert "h9" not in out, "a host that cannot be reached from here may be well"


@pytest.mark.parametrize("form", ["json", "jsonl", "junit", "text"])
def test_a_name_that_reads_as_a_secrets_leaves_the_reason_its_words(check: Check, form: str) -> None:
    lost = TransportError("gpu-token: the host refuses to run a command")
    _, out = check((*three(), Faked("gpu-token", error=lost)), "--format", form)
    assert "the host refuses to run a command" in out


def test_so_does_an_error_that_ends_a_verb() -> None:
    with pytest.raises(TransportError) as told, hosts_of_cli.open_hosts(HostOptions(ssh=["gpu01", "gpu-token"])):
        raise TransportError("gpu-token: the host refuses to run a command")
    assert told.value.problem == "[gpu-token] the host refuses to run a command"


def test_one_host_alone_is_compared_with_nothing(check: Check) -> None:
    _, out = check((Faked("h1"),), "--json")
    assert rows(json.loads(out)["hosts"][0])[VERSIONS]["reason"] == ALONE


def test_a_recording_was_not_reached_over_ssh(capsys: pytest.CaptureFixture[str]) -> None:
    directory = Path(__file__).parents[2] / "examples" / "hosts" / "debian12-ready"
    main(["check", "--json", "--recorded", str(directory)])
    found = rows(json.loads(capsys.readouterr().out)["hosts"][0])
    for id in ("fleet.clock-skew", "fleet.hostkey", "fleet.ssh-sudo"):
        assert found[id]["outcome"] == "not-applicable"
        assert "this machine, or a recording" in found[id]["reason"]


def test_a_host_that_was_looked_at_costs_no_connection_until_the_others_are(check: Check) -> None:
    hosts = (Faked("h1"), Faked("h2", error=WANTS_PASSWORD), Faked("h3"))
    check(hosts)
    assert [one.hung_up for one in hosts] == [1, 1, 1]


def test_hosts_that_are_looked_at_again_stay_connected(check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    rounds: list[float] = []

    def wait(seconds: float) -> None:
        rounds.append(seconds)
        if len(rounds) == 2:
            raise KeyboardInterrupt

    monkeypatch.setitem(watch.__kwdefaults__ or {}, "wait", wait)
    hosts = three()
    check(hosts, "--watch", "30")
    assert rounds == [30, 30]
    assert [one.hung_up for one in hosts] == [0, 0, 0]
