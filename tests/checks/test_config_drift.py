"""rt.config-drift: who rewrote what gpunode wrote, and whether anything is lost by it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.checks import run_all
from gpunode.checks.causes import folded
from gpunode.facts.collect import assemble
from gpunode.facts.recordings import load_recording
from gpunode.facts.wire import file_facts
from gpunode.model.facts import HostFacts, JournalFacts
from gpunode.model.files import FileFacts, WrittenFile
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from tests.checks import hosts as h

EXAMPLES = Path(__file__).parents[2] / "examples" / "hosts"
DOCKER, CONTAINERD, OWN = (
    "/etc/docker/daemon.json",
    "/etc/containerd/config.toml",
    "/etc/modprobe.d/gpunode-nouveau.conf",
)
FIRST = "/etc/apt/sources.list.d/gpunode-cuda.sources"
RUN = "20260521T151820Z-1.1"
BEFORE, AFTER = file_facts("", "{}").sha256 or "", "a" * 64
EDITED = h.DAEMON_JSON.replace("{", '{"log-level": "warn", ', 1)
ANSIBLE = "# Ansible managed: do not touch\nversion = 2\n"
BY_OPERATOR = '{"runtimes": {"other": {"path": "/usr/local/nvidia/toolkit/nvidia-container-runtime"}}}'


def outcome(path: str, text: str | None, step: str, default: str | None = None, **more: Any) -> CheckOutcome:
    """The file's text now, where gpunode had left one with the hash AFTER."""
    now = replace(file_facts(path, text), written_at=1_779_400_000) if text is not None else FileFacts(path)
    journal = JournalFacts(
        files={path: WrittenFile(AFTER, BEFORE, step, RUN)},
        defaults={step.partition(".")[0]: default} if default else {},
    )
    return judged(h.host(files={**h.files(), path: replace(now, **more)}, journal=journal))


def judged(host: HostFacts) -> CheckOutcome:
    return run_all(host, None, load_catalog(), today=h.TODAY).results["rt.config-drift"].outcome


@pytest.mark.parametrize(
    ("path", "text", "step", "says", "quotes", "remedy"),
    [
        (DOCKER, "{}", "docker.default", f"{DOCKER} was put back as it was before after gpunode wrote it: what step "
         "docker.default of 2026-05-21 15:18 UTC did is lost", "since 2026-05-21 21:46 UTC; gpunode left aaaaaaaaaaaa",
         "gpunode setup --only runtime writes it again"),
        (DOCKER, None, "docker.default", "was removed", f"{DOCKER} is absent", "gpunode setup"),
        (DOCKER, BY_OPERATOR, "docker.default", "was rewritten", "the GPU Operator's toolkit", "gpunode setup"),
        (CONTAINERD, ANSIBLE, "containerd.default", "was rewritten", "line 1 says '# Ansible managed", "gpunode setup"),
        (OWN, "", "kernel.nouveau", "was rewritten", "gpunode left", "find out who changed"),
        (OWN, None, "kernel.nouveau", "was removed", "is absent", "find out who changed"),
    ],
    ids=["put back", "removed", "by the operator", "by Ansible", "a file of gpunode's own", "that one removed"],
)  # fmt: skip
def test_a_lost_change_names_file_step_time_and_writer(
    path: str, text: str | None, step: str, says: str, quotes: str, remedy: str
) -> None:
    found = outcome(path, text, step)
    assert isinstance(found, Finding)
    assert says in found.summary
    assert quotes in found.evidence
    assert found.remedy.text.startswith(remedy)
    assert found.severity is (Severity.ERROR if remedy.startswith("gpunode") else None)


def test_it_explains_that_the_engine_has_no_gpu_runtime() -> None:
    lost = h.host(files=h.files(docker="{}"), runtimes=(replace(h.DOCKER_ENGINE, handlers=("runc",)),))
    report = folded(run_all(lost, None, load_catalog(), today=h.TODAY))
    causes = {id: r.outcome.cause for id, r in report.results.items() if isinstance(r.outcome, Finding)}
    assert causes == {"rt.config-drift": None, "rt.docker-file": "rt.config-drift", "rt.docker-live": "rt.config-drift"}


def test_the_default_is_lost_where_setup_had_made_it_the_default() -> None:
    runtime_alone = h.DAEMON_JSON.replace('"default-runtime": "nvidia", ', "")
    assert outcome(DOCKER, runtime_alone, "docker.default") is None
    assert isinstance(outcome(DOCKER, runtime_alone, "docker.default", default="runc"), Finding)


def test_an_admins_edit_that_keeps_runtime_and_default_is_no_drift() -> None:
    assert outcome(DOCKER, EDITED, "docker.default", default="runc") is None


def test_an_engines_file_is_named_before_others() -> None:
    journal = JournalFacts(files={
        FIRST: WrittenFile(AFTER, "absent", "repo.cuda", RUN),
        DOCKER: WrittenFile(AFTER, BEFORE, "docker.default", RUN),
    })  # fmt: skip
    found = judged(h.host(files={**h.files(docker="{}"), FIRST: FileFacts(FIRST)}, journal=journal))
    assert isinstance(found, Finding)
    assert found.summary.startswith(f"{DOCKER} was put back as it was before after gpunode wrote it, and 1 more: ")


@pytest.mark.parametrize(
    ("host", "reason"),
    [
        (h.host(journal=JournalFacts()), "names no file that was read"),
        (h.host(files={DOCKER: FileFacts(DOCKER, unread="permission denied")}), "names no file that was read"),
        (h.host(files=h.files(docker='{"http-proxy": "http://MASKED@proxy"}')), "names no file that was read"),
        (h.host(files={}), "names no file that was read"),
        (h.host(unread={"journal": "permission denied"}), "journal was not read: permission denied"),
    ],
    ids=[
        "no journal",
        "a file that was not read",
        "a file with a secret, in a recording",
        "a file nobody asked for",
        "a journal that was not read",
    ],
)
def test_what_was_not_read_is_no_pass(host: HostFacts, reason: str) -> None:
    told = judged(host)
    assert isinstance(told, NotApplicable)
    assert reason in told.reason


def test_setups_own_journal_of_a_real_run_tells_what_it_wrote() -> None:
    recording = load_recording(EXAMPLES / "debian12-ready")
    assert judged(assemble(recording, "gpu01")) is None
    edited = re.sub(rb"(@ file:/etc/docker/daemon.json) .*\n(\|.*\n)*", b"\\1 bytes=2 mode=644\n|{}\n", recording)
    found = judged(assemble(edited, "gpu01"))
    assert isinstance(found, Finding)
    assert "step docker.default of 2026-11-21 15:18 UTC did is lost" in found.summary


@pytest.mark.parametrize("at", [10**11, 10**12 - 1])
def test_a_clock_of_nonsense_is_an_unknown_time(at: int) -> None:
    found = outcome(DOCKER, "{}", "docker.default", written_at=at * 10)
    assert isinstance(found, Finding)
    assert "since an unknown time" in found.evidence
