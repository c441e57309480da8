"""A controller that is killed in the middle: what is on its disk then, and who goes on, with real processes."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fleet.runs.nodes import Node, Site, site, until

REMOVE = ("--allow-no-gpu", "--driver", "none", "--only", "driver")


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Site]:
    with site(tmp_path) as one:
        yield one


@pytest.fixture
def three(place: Site) -> tuple[Node, Node, Node]:
    """gpu01 is as the spec wants it; gpu02 and gpu03 are not."""
    return place.add("gpu01", driver=False), place.add("gpu02"), place.add("gpu03")


def killed(place: Site, at_work: Node, *words: str) -> str:
    """A setup whose controller got SIGKILL while a host was at work; the run's id."""
    running = place.start("setup", "--yes", *REMOVE, "--forks", "1", *words, "--ssh", "gpu[01-03]")
    until(lambda: at_work.ran)
    running.kill()
    running.wait()
    return place.run_id()


def states(place: Site, run_id: str) -> dict[str, tuple[str, int | None]]:
    _, out, _ = place.gpunode("runs", "show", run_id, "--json")
    return {host["target"]: (host["state"], host["code"]) for host in json.loads(out)["hosts"]}


def test_a_killed_run_goes_on_where_it_was(place: Site, three: tuple[Node, Node, Node]) -> None:
    done, at_work, waits = three
    run_id = killed(place, at_work)
    assert states(place, run_id) == {
        "gpu01": ("ended", 0),
        "gpu02": ("at-work", None),
        "gpu03": ("not-begun", None),
    }
    logins, lines = done.logins, (place.runs / run_id / "outcomes.jsonl").read_text()
    waits.go()
    again = place.start("setup", "--yes", "--resume", run_id, "--json")
    until(lambda: "waiting for" in place.said)
    at_work.go()
    out, _ = again.communicate(timeout=300)
    assert again.returncode == 0, place.said
    assert [host["target"] for host in json.loads(out)["hosts"]] == ["gpu01", "gpu02", "gpu03"], "the whole run"
    assert done.logins == logins, "a host that was done was asked again"
    assert (len(at_work.ran), len(waits.ran)) == (1, 1), "a transaction began twice, or never"
    assert (place.runs / run_id / "outcomes.jsonl").read_text().startswith(lines), "what was kept is no longer there"
    assert set(states(place, run_id).values()) == {("ended", 0)}
    code, _, said = place.gpunode("setup", "--yes", "--resume", run_id)
    assert (code, "is left to go on with" in said) == (0, True)


def test_what_failed_while_nobody_watched_is_done_once_more(place: Site, three: tuple[Node, Node, Node]) -> None:
    """Under the name of the killed run the host would answer how that one's command ended, and run nothing."""
    _, at_work, waits = three
    run_id = killed(place, at_work)
    (at_work.here / "fail").touch()
    at_work.go()
    waits.go()
    until(lambda: "100" in at_work.sh("cat /var/lib/gpunode/runs/*/rc"))
    (at_work.here / "fail").unlink()
    code, _, said = place.gpunode("setup", "--yes", "--resume", run_id)
    assert (code, len(at_work.ran), len(waits.ran)) == (0, 2, 1), said
    assert "nvidia-driver" not in at_work.sh("dpkg-query -W")


def test_while_the_controller_lives_nobody_else_goes_on(place: Site, three: tuple[Node, Node, Node]) -> None:
    _, at_work, waits = three
    running = place.start("setup", "--yes", *REMOVE, "--forks", "1", "--ssh", "gpu[01-03]")
    until(lambda: at_work.ran)
    run_id, logins = place.run_id(), at_work.logins
    for words in (("--resume", run_id), ("--attach", run_id), ("--retry-failed",)):
        code, out, said = place.gpunode("setup", "--yes", *words)
        assert (code, out, f"run {run_id} is still at work: pid {running.pid} " in said) == (2, "", True)
    assert at_work.logins == logins
    assert "at work (pid" in place.gpunode("runs")[1]
    at_work.go()
    waits.go()
    running.communicate(timeout=300)
    assert running.returncode == 0


def test_attach_watches_what_is_at_work_and_begins_nothing(place: Site, three: tuple[Node, Node, Node]) -> None:
    _, at_work, waits = three
    run_id = killed(place, at_work)
    watching = place.start("setup", "--attach", run_id)
    until(lambda: "waiting for" in place.said)
    at_work.go()
    out, _ = watching.communicate(timeout=300)
    assert watching.returncode == 1, "gpu03 is still to be done"
    assert "not begun: the run was interrupted" in out
    assert (waits.logins, waits.ran, len(at_work.ran)) == (1, [], 1)  # one login made its plan, before the question
    assert states(place, run_id)["gpu02"] == ("ended", 0)


def test_attach_to_all_that_was_left_ends_the_run(place: Site) -> None:
    node = place.add("gpu02")
    running = place.start("setup", "--yes", *REMOVE, "--ssh", "gpu02")
    until(lambda: node.ran)
    running.kill()
    running.wait()
    node.go()
    code, _, said = place.gpunode("setup", "--attach", place.run_id())
    assert code == 0, said
    (run,) = json.loads(place.gpunode("runs", "--json")[1])["runs"]
    assert run["codes"] == {"0": 1}


def test_a_host_that_cannot_be_reached_is_left_for_the_next_resume(place: Site, three: tuple[Node, Node, Node]) -> None:
    _, at_work, waits = three
    run_id = killed(place, at_work)
    at_work.go()
    waits.sshd.stop()
    code, _, said = place.gpunode("setup", "--yes", "--resume", run_id)
    assert code == 3, said
    assert states(place, run_id) == {"gpu01": ("ended", 0), "gpu02": ("ended", 0), "gpu03": ("not-begun", None)}


def test_what_failed_is_tried_again_and_nothing_else(place: Site, three: tuple[Node, Node, Node]) -> None:
    done, fails, works = three
    for node in (fails, works):
        node.go()
    (fails.here / "fail").touch()
    code, out, said = place.gpunode("setup", "--yes", *REMOVE, "--ssh", "gpu[01-03]", "--connect-timeout", "20")
    run_id = place.run_id()
    assert code == 1, said
    assert out.splitlines()[-2:] == ["not done  --ssh gpu02", f"again     gpunode setup --retry-failed {run_id}"]
    (fails.here / "fail").unlink()
    before = (done.logins, works.logins)
    code, out, said = place.gpunode("setup", "--retry-failed", "--yes", "--format", "jsonl")
    assert code == 0, said
    assert (done.logins, works.logins) == before
    lines = [json.loads(line) for line in out.splitlines()]
    schemas = [line["schema"] for line in lines]
    assert schemas[0] == "gpunode.event/1", "what happens is printed as it happens"
    assert [line["target"] for line in lines if line["schema"] == "gpunode.setup-result/3"] == ["gpu02"]
    runs = json.loads(place.gpunode("runs", "--json")[1])["runs"]
    assert [(run["hosts_count"], run["codes"]) for run in runs] == [(1, {"0": 1}), (3, {"0": 2, "1": 1})]
    kept = json.loads((place.runs / runs[0]["id"] / "run.json").read_text())
    assert kept["connection"] == {"connect_timeout": "20"}, "it was reached as before"


def test_after_ctrl_c_the_hosts_that_did_not_begin_are_what_is_retried(
    place: Site, three: tuple[Node, Node, Node]
) -> None:
    _, at_work, waits = three
    running = place.start("setup", "--yes", *REMOVE, "--forks", "1", "--ssh", "gpu[01-03]")
    until(lambda: at_work.ran)
    running.send_signal(signal.SIGINT)
    until(lambda: "stopping after that" in place.said)
    at_work.go()
    out, _ = running.communicate(timeout=300)
    assert (running.returncode, "not done  --ssh gpu03" in out) == (1, True), out
    assert states(place, place.run_id()) == {
        "gpu01": ("ended", 0),
        "gpu02": ("ended", 0),
        "gpu03": ("not-begun", None),
    }
    waits.go()
    code, _, said = place.gpunode("setup", "--yes", "--retry-failed")
    assert (code, len(at_work.ran), len(waits.ran)) == (0, 1, 1), said


def test_events_are_there_while_a_host_is_at_work(place: Site) -> None:
    node = place.add("gpu02")
    running = place.start("setup", "--yes", *REMOVE, "--ssh", "gpu02", "--format", "jsonl")
    assert running.stdout is not None
    kinds: list[str | None] = []
    while not kinds or kinds[-1] != "step-begin":
        kinds.append(json.loads(running.stdout.readline()).get("kind"))
    assert running.poll() is None
    node.go()
    last = running.communicate(timeout=300)[0].splitlines()[-1]
    assert (json.loads(last)["target"], json.loads(last)["code"], running.returncode) == ("gpu02", 0, 0)


def test_a_reader_that_leaves_does_not_stop_the_hosts(place: Site) -> None:
    node = place.add("gpu02")
    running = place.start("setup", "--yes", *REMOVE, "--ssh", "gpu02", "--format", "jsonl")
    assert running.stdout is not None
    running.stdout.readline()
    running.stdout.close()
    node.go()
    running.wait(timeout=300)
    assert (running.returncode, "nvidia-driver" in node.sh("dpkg-query -W")) == (0, False)
