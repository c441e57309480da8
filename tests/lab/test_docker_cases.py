"""Every pair of daemon.json files through the real dockerd: what was asked for is in force, all else is as it was."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from gpunode.errors import GpunodeError
from gpunode.model.versions import release
from tests.engines.docker_cases import Case, cases, rewritten

from .container_image import write_image
from .docker_generated import Made, judged, made_for
from .host import Host
from .lab import Lab

VERSIONS = {"debian12": "20.10", "debian13": "26.1", "debian-sid": "28.5"}
RELEASES = {"debian12": "20.10.24", "debian13": "26.1.5", "debian-sid": "28.5.2"}
STUB = Path(__file__).parent / "stubs" / "files" / "nvidia-container-runtime"
# Pairs whose "before" that docker does not start on, and why: gpunode mends them, or leaves the key that is wrong.
AN_EMPTY_FILE = ("EOF", "empty-file", "only-blanks", "no-default-no-file-content")
A_MARK = (
    "invalid character 'ï' looking for beginning of value",
    "byte-order-mark-goes", "byte-order-mark-and-crlf", "byte-order-mark-and-nothing-else",
)  # fmt: skip
NO_NVIDIA = ("specified default runtime 'nvidia' does not exist", "default-names-a-missing-nvidia")
NO_PATH = ("either a runtimeType or a path must be configured", "runtime-without-path", "nvidia-entry-null")
UNKNOWN = ("the following directives don't match any configuration option", "proxies")
REFUSED = {
    "20.10": (AN_EMPTY_FILE, A_MARK, NO_NVIDIA, UNKNOWN),
    "26.1": (NO_NVIDIA, NO_PATH),
    "28.5": (NO_NVIDIA, NO_PATH),
}
REFUSED_STILL = {"20.10": ("proxies",), "26.1": (), "28.5": ()}
# dockerd 20.10 dies of a reload of this file, though it starts on it; gpunode's outcome it takes.
DIES = {"20.10": {"runtimes-null": "died: panic: assignment to entry in nil map"}, "26.1": {}, "28.5": {}}
# A container is started through these: one that names no runtime.
RUN = (
    "no-file",
    "crlf",
    "hand-set-path",
    "hand-set-runtime-args",
    "runtime-type-form",
    "nvidia-docker2",
    "no-default-one-line",
)
# What /info tells of the moment, and what the change is about.
# ("Debug" is switched behind the line in the log that says the reload is done.)
OF_THE_MOMENT = (
    "Debug",
    "SystemTime",
    "NFd",
    "NGoroutines",
    "NEventsListener",
    "ContainersStopped",
    "Containers",
    "Images",
)
CHANGED = ("Runtimes", "DefaultRuntime", "RuncCommit", "Warnings")  # RuncCommit is asked of the default runtime


# dockerd is also started with these: their bytes or their keys are such that a start might read them otherwise.
START = (
    *RUN, "empty-file", "null-document", "byte-order-mark-goes", "carriage-returns-alone", "cloud-provider-node",
    "numbers-keep-their-spelling", "default-names-a-missing-nvidia", "shim-runtimes",
    "cdi-on-26", "cdi-was-off", "cdi-is-null-on-28",
)  # fmt: skip


@pytest.mark.parametrize("distribution", VERSIONS)
def test_every_pair_is_in_force_after_a_reload_and_after_a_start(lab: Lab, distribution: str) -> None:
    version = VERSIONS[distribution]
    mine = [case for case in cases() if (case.version or version).startswith(version) and takes(case, version)]
    assert len(mine) >= 60
    made = made_for(RELEASES[distribution])
    answers = through_dockerd(lab.host(distribution, runtime="docker"), mine, made)
    judged(version, answers, made, same)
    refused = {name: reason for reason, *names in REFUSED[version] for name in names}
    for case in mine:
        answer = answers[case.name]
        if case.name in refused:
            assert isinstance(answer["before"], str), case.name
            print(f"dockerd {version} refuses the old {case.name}: {refused[case.name]}")
            assert refused[case.name] in answer["before"]
        else:
            assert isinstance(answer["before"], dict), (case.name, answer["before"])
        assert answer["died"] == DIES[version].get(case.name), case.name
        if case.name in REFUSED_STILL[version]:
            assert refused[case.name] in answer["reloaded"]
            continue
        in_force(case, answer["before"], answer["reloaded"])
        if case.name in START:
            in_force(case, None, answer["started"])
            assert bool(answer["started"].get("CDISpecDirs")) == (case.want.cdi or version == "28.5")
        if case.name in RUN:
            assert answer["ran"] == ("stub" if case.want.default else "runc"), (case.name, answer["ran"])


def takes(case: Case, version: str) -> bool:
    """False for a file that gpunode itself keeps away from that docker, which is said and must be so."""
    if (release(version) or (0, 0)) >= case.least:
        return True
    with pytest.raises(GpunodeError) as refused:
        rewritten(case.before, f"{version}.0", case.want)
    print(f"dockerd {version} is not given {case.name}: {refused.value.problem}")
    return False


def in_force(case: Case, before: Any, now: Any) -> None:
    """The daemon's answer `now` is as the pair's "after" says; all else in it is as in `before`."""
    assert isinstance(now, dict), (case.name, now)
    config = json.loads(case.after)
    assert now["DefaultRuntime"] == (config.get("default-runtime") or "runc"), case.name
    effective = now["Runtimes"]
    for name, entry in config["runtimes"].items():
        said = {key.lower(): value for key, value in entry.items()}
        assert effective[name].get("path", "") == said.get("path", ""), (case.name, name)
        assert effective[name].get("runtimeArgs", []) == said.get("runtimeargs", []), (case.name, name)
    if isinstance(before, dict):
        assert same(now) == same(before), case.name


def same(answer: dict[str, Any]) -> dict[str, Any]:
    ignored = (*OF_THE_MOMENT, *CHANGED)
    return {k: sorted(v or ()) if k == "Labels" else v for k, v in answer.items() if k not in ignored}


def through_dockerd(host: Host, mine: list[Case], made: list[Made]) -> dict[str, Any]:
    """What docker_cases.py on the host saw, by pair."""
    host.nsrun("systemctl stop docker.socket docker.service", check=True)
    for directory in ("/usr/bin", "/opt/ours", "/opt/old"):
        host.write(f"{directory}/nvidia-container-runtime", STUB.read_text(), 0o755)
    host.nsrun("mkdir -p /etc/docker; ln -s /usr/sbin/runc /usr/bin/crun", check=True)
    write_image(host.path("/root/lab-image.tar"), "lab.example/busybox:lab")
    host.write("/root/cases.json", json.dumps([*map(row, mine), *map(generated_row, made)]))
    program = Path(__file__).with_name("docker_cases.py").read_text()
    limit_s = 240 + len(made)  # a pair takes a tenth of it
    done = host.nsrun("python3 - /root/cases.json", input=program, check=True, timeout=limit_s)
    return {answer["name"]: answer for answer in map(json.loads, done.stdout.splitlines())}


def row(case: Case) -> dict[str, object]:
    texts = {"before": packed(case.before), "after": packed(case.after)}
    return {"name": case.name, **texts, "run": case.name in RUN, "start": case.name in START}


def generated_row(one: Made) -> dict[str, object]:
    texts = {"before": packed(one.case.text), "after": packed(one.case.text if one.after is None else one.after)}
    return {"name": one.name, **texts, "run": False, "start": False, "generated": True}


def packed(text: str | None) -> str | None:
    return None if text is None else base64.b64encode(text.encode("utf-8", "surrogateescape")).decode()
