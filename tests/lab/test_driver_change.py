"""Real apt, real holds: old lists repaired, upgrade, downgrade, the other flavour, away, a directory as the source."""

from __future__ import annotations

import shutil
from pathlib import Path

from . import repositories
from .host import Host
from .lab import Lab
from .product_runs import Controller, expect

TOOLKIT = "https://nvidia.github.io/libnvidia-container/stable/deb/$(ARCH)"
LISTS = "/etc/apt/sources.list.d"
# Two lists of one repository that name different keys make every apt-get stop; the third has been dead for years.
OLD = {
    f"{LISTS}/nvidia-container-toolkit.list": f"deb [signed-by=/usr/share/keyrings/lab-debian.asc] {TOOLKIT} /\n",
    f"{LISTS}/libnvidia-container.list": f"deb [signed-by=/usr/share/keyrings/other.gpg] {TOOLKIT} /\n",
    f"{LISTS}/nvidia-docker.list": "deb https://nvidia.github.io/nvidia-docker/ubuntu18.04/$(ARCH) /\n",
}


def installed(host: Host) -> dict[str, str]:
    """Driver packages by name -> version"""
    form = "'${db:Status-Status} ${Package} ${Version}\\n'"
    asked = f"dpkg-query -W -f {form} '*nvidia*' libcuda1 cuda-drivers 2>/dev/null"
    lines = (line.split() for line in host.nsrun(asked).stdout.splitlines())
    return {words[1]: words[2] for words in lines if words[0] == "installed" and "container" not in words[1]}


def held(host: Host) -> set[str]:
    return set(host.nsrun("apt-mark showhold", check=True).stdout.split())


def versions(host: Host) -> set[str]:
    """Of every driver package but the pinning ones: one entry when the set is whole."""
    return {version.split("-")[0] for name, version in installed(host).items() if "pinning" not in name}


def test_a_driver_is_changed_in_every_direction(lab: Lab, tmp_path: Path) -> None:
    host = lab.host("debian12", gpu="h100", files=OLD)
    me = Controller("ssh", tmp_path / "home")

    def setup(*words: str, code: int = 0) -> str:
        spec = ("--only", "driver", "--trust-key", lab.repo_fingerprint, "--reboot", "if-needed")
        result = expect(me.gpunode(host, "setup", "--yes", *spec, *words), code)
        return result.stdout + result.stderr

    stopped = host.nsrun("apt-get update")
    assert "Conflicting values set for option Signed-By" in stopped.stderr, "the old lists are what they are said to be"

    setup()
    assert versions(host) == {"595.91.07"}
    assert "# disabled by gpunode: deb" in host.read(f"{LISTS}/nvidia-docker.list")
    assert "# disabled by gpunode: deb" in host.read(f"{LISTS}/libnvidia-container.list")
    assert host.read(f"{LISTS}/nvidia-container-toolkit.list") == OLD[f"{LISTS}/nvidia-container-toolkit.list"]
    policy = host.nsrun("apt-cache policy nvidia-open", check=True).stdout
    assert "Candidate: 595.91.07-1" in policy, "the policy leaves the branch to its own pin"

    unknown = setup("--driver", "580.99.99", code=1)
    assert "nvidia-driver-pinning-580.99.99" in unknown
    assert "--driver 580 takes the newest" in " ".join(unknown.split())
    assert versions(host) == {"595.91.07"}
    assert "nvidia-open" in held(host), "what is there stays held"

    setup("--driver", "580")
    assert versions(host) == {"580.178.04"}
    assert "nvidia-open" in held(host)

    setup("--driver", "595", "--flavour", "proprietary")
    assert versions(host) == {"595.91.07"}
    assert "cuda-drivers" in installed(host)
    assert not {"nvidia-open", "nvidia-kernel-open-dkms"} & installed(host).keys()

    setup("--driver", "none")
    assert installed(host) == {}
    assert not held(host) & {"cuda-drivers", "libcuda1"}
    gone = ("/etc/modules-load.d/gpunode-nvidia.conf", "/etc/modprobe.d/gpunode-nouveau.conf")
    assert [path for path in gone if host.exists(path)] == []
    assert host.exists(f"{LISTS}/gpunode-cuda.sources"), "repositories are not changed"
    assert "no changes: this host matches the spec" in setup("--driver", "none")


def test_a_signed_directory_on_the_host_is_a_source(lab: Lab, tmp_path: Path) -> None:
    host = lab.host("debian12", gpu="h100")
    directory = host.path("/srv/nvidia")
    shutil.copytree(lab.web.root / repositories.CUDA / "debian12" / "x86_64", directory)
    (directory / "key.asc").write_text(lab.trust.vendor.armored())
    me = Controller("ssh", tmp_path / "home")
    local = ("setup", "--yes", "--only", "driver", "--driver-source", "local", "--mirror", "/srv/nvidia")

    stranger = expect(me.gpunode(host, *local, "--trust-key", "A" * 40), 1)
    assert lab.repo_fingerprint in (stranger.stdout + stranger.stderr).replace(" ", "")
    assert installed(host) == {}

    expect(me.gpunode(host, *local, "--driver", "580", "--trust-key", lab.repo_fingerprint), 0)
    assert versions(host) == {"580.178.04"}, "the newest in the directory is 595"
    assert "URIs: file:///srv/nvidia/" in host.read(f"{LISTS}/gpunode-local.sources")
