"""`gpunode export script` on a host that has no Python: made over SSH, carried there, run by the host's own sh."""

from __future__ import annotations

from pathlib import Path

import pytest

from .host import Host, Result
from .lab import Lab
from .product_runs import Controller, expect, fingerprint_of_state

AT = "/root/setup.sh"
# Not through dpkg, which would take other packages along.
NO_PYTHON = "rm -f /usr/bin/python3* /usr/local/bin/python3* && ! command -v python3"


@pytest.fixture
def controller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Controller:
    return Controller("ssh", tmp_path / "home")


def exported(controller: Controller, host: Host, directory: Path, *words: str) -> None:
    """The script of its plan, brought to the host as a person does it."""
    expect(controller.gpunode(host, "export", "script", *words, "--output", str(directory)), 0)
    host.write(AT, (directory / "setup.sh").read_bytes(), 0o600)


def run(host: Host, *words: str, sh: str = "sh") -> Result:
    return host.run(f"{sh} {AT} {' '.join(words)}", user="root")


def test_a_host_without_python_gets_driver_and_toolkit(lab: Lab, controller: Controller, tmp_path: Path) -> None:
    host = lab.host("debian12", gpu="h100", runtime="docker")
    host.nsrun(NO_PYTHON, check=True)
    trusted = ("--trust-key", lab.repo_fingerprint)
    exported(controller, host, tmp_path / "script", *trusted)

    before = fingerprint_of_state(host)
    shown = expect(run(host), 0)
    assert "driver.install" in shown.stdout
    assert fingerprint_of_state(host) == before

    expect(run(host, "--yes"), 0)
    assert "H100" in expect(host.run("nvidia-smi -L", user="root"), 0).stdout
    assert "nvidia" in host.read("/etc/docker/daemon.json")
    assert "no changes" in expect(controller.gpunode(host, "plan", *trusted), 0).stdout

    done = fingerprint_of_state(host)
    again = expect(run(host, "--yes"), 0)
    assert "nothing to do" in again.stdout
    assert fingerprint_of_state(host) == done
    assert not host.exists("/run/gpunode/lock")

    expect(controller.gpunode(host, "undo", "--yes", "--packages"), 0)
    assert not host.exists("/etc/docker/daemon.json")
    assert host.nsrun("dpkg-query -W nvidia-open").returncode != 0


def test_what_changed_since_is_refused_and_nothing_is_touched(lab: Lab, controller: Controller, tmp_path: Path) -> None:
    host = lab.host("debian12", gpu="h100", runtime="docker")
    host.nsrun(NO_PYTHON, check=True)
    exported(controller, host, tmp_path / "script", "--trust-key", lab.repo_fingerprint)
    host.write("/etc/docker/daemon.json", '{"debug": true}\n')
    before = fingerprint_of_state(host)
    refused = expect(run(host, "--yes"), 7)
    assert "/etc/docker/daemon.json" in refused.stderr
    assert fingerprint_of_state(host) == before
    assert not host.exists("/run/gpunode/lock")

    other = lab.host("debian12", gpu="h100", runtime="docker")
    other.write(AT, (tmp_path / "script" / "setup.sh").read_bytes())
    assert host.name in expect(run(other, "--yes"), 2).stderr


def test_a_daemon_that_does_not_start_again_gets_its_file_back(
    lab: Lab, controller: Controller, tmp_path: Path
) -> None:
    host = lab.host("debian12", gpu="h100", runtime="docker", files={"/etc/docker/daemon.json": '{"debug": false}\n'})
    host.nsrun(NO_PYTHON, check=True)
    exported(controller, host, tmp_path / "script", "--trust-key", lab.repo_fingerprint)
    # It starts as long as its file has no word of nvidia.
    host.write(
        "/etc/systemd/system/docker.service.d/fails.conf",
        "[Service]\nExecStartPre=/bin/sh -c '! grep -q nvidia /etc/docker/daemon.json'\n",
    )
    host.nsrun("systemctl daemon-reload", check=True)
    failed = expect(run(host, "--yes"), 1)
    assert "docker.default failed" in failed.stderr
    assert "docker.default: rolled back" in failed.stdout
    assert host.read("/etc/docker/daemon.json") == '{"debug": false}\n'
    assert host.nsrun("systemctl is-active docker").stdout.strip() == "active"
    assert "interrupted" not in expect(run(host), 7).stderr, "packages are there now, so the plan is another"
