"""Faults of what runs while a container starts, and of a setup's downloads: rows of test_checks.py."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gpunode.model.facts import FailedStep, HostFacts, JournalFacts, ToolkitFacts
from gpunode.model.files import FileFacts
from gpunode.model.packages import PackageFacts
from tests.checks import hosts as h

LEGACY = 'nvidia-container-runtime.mode = "legacy"\n'
RUN = "20261121T151820Z-6283.1"
LAGS = "E: Failed to fetch https://x/a.deb  File has unexpected size (1 != 2). Mirror sync in progress? [IP: ::1 443]"
NO_TOOLKIT = replace(h.READY, toolkit=ToolkitFacts())
NO_DRIVER = replace(h.READY, driver=replace(h.READY.driver, loaded=None, installed=None, libraries={}, dkms=()),
                    packages=PackageFacts("apt"), kernel=replace(h.READY.kernel, trees=()))  # fmt: skip


def failed(host: HostFacts, error: str = LAGS, step: str = "driver.install") -> HostFacts:
    error = f"download 9 packages ended with code 100: {error} · E: Unable to fetch some archives"
    return replace(host, journal=JournalFacts(failed=FailedStep(step, RUN, error)))


def legacy(*engines: dict[str, Any], version: str = "1.20.0", ctk: str = LEGACY, **of: Any) -> HostFacts:
    """The toolkit works as it did before CDI, and the engines are docker with these changes."""
    dockers = tuple(replace(h.DOCKER_ENGINE, **changes) for changes in engines or ({},))
    host = replace(h.toolkit(version=version), runtimes=dockers, files=h.files(ctk=ctk))
    return replace(host, **of)


def snap(**changes: Any) -> HostFacts:
    path = "/var/snap/docker/current/config/daemon.json"
    engine = replace(h.DOCKER_ENGINE, snap=True, unit="snap.docker.dockerd.service", config_path=path)
    return replace(h.READY, runtimes=(replace(engine, **changes),))


ANN: dict[str, Any] = {"user": "ann", "owner": "1000:1000"}
FAULTS: tuple[tuple[str, HostFacts, str], ...] = (
    ("os.mirror-sync", failed(NO_DRIVER), f"driver.install, 2026-11-21 15:18 UTC: {LAGS}"),
    ("os.mirror-sync", failed(NO_DRIVER, "error: Hash Sum mismatch"), "Hash Sum mismatch"),
    ("os.mirror-sync", failed(NO_TOOLKIT, step="toolkit.install"), "toolkit.install, 2026-11-21 15:18 UTC"),
    ("ctk.device-rules", legacy(ANN), "docker@ann's root is ann's; " + h.CTK + ": mode legacy, no-cgroups not true"),
    ("ctk.device-rules", legacy(ANN, {}), "docker@ann's root is ann's"),
    ("ctk.device-rules", legacy(platform="container", user_namespace=True), "that of this unprivileged container"),
    ("ctk.device-rules", legacy(version="1.17.8", ctk="", platform="container", user_namespace=True),
     "mode auto, no-cgroups not true; toolkit 1.17.8"),
    ("ctk.device-rules", legacy(version="1.7.0", ctk=""), "nvidia-ctk --version prints 1.7.0"),
    ("rt.snap-docker", snap(handlers=("runc",)), "docker is installed as a snap: /var/snap/docker/current/config"),
    ("rt.snap-docker", snap(handlers=(), active=False), "Runtimes not known"),
    ("ctk.hook-read-only", h.toolkit(hook_refused="containerd"), "log of containerd: \"mkdirat etc/nvidia/"),
)  # fmt: skip
PASSES: tuple[tuple[str, str, HostFacts], ...] = (
    ("ctk.device-rules", "root of the machine may", legacy()),
    ("ctk.device-rules", "no-cgroups", legacy(ANN, ctk=LEGACY + 'nvidia-container-cli.no-cgroups = true\n')),
    ("ctk.device-rules", "CDI", legacy(ANN, ctk='nvidia-container-runtime.mode = "cdi"\n')),
    ("ctk.device-rules", "CDI by default", legacy(ANN, ctk="")),
    ("ctk.device-rules", "a rootless engine without the handler", legacy({**ANN, "handlers": ("runc",)})),
    ("ctk.device-rules", "a privileged container", legacy(platform="container", user_namespace=False)),
    ("ctk.config", "no-cgroups in an unprivileged container", legacy(
        ctk="nvidia-container-cli.no-cgroups = true\n", platform="container", user_namespace=True)),
    ("ctk.config", "the root of a driver container", replace(
        h.driver(container=True), files=h.files(ctk="nvidia-container-cli.root = '/run/nvidia/driver'\n"))),
    ("ctk.config", "the mode of a Jetson", h.host(
        platform="l4t", files=h.files(ctk="nvidia-container-runtime.mode = 'csv'\n"))),
    ("rt.snap-docker", "a snap that has the handler", snap()),
    ("ctk.hook-read-only", "a mended toolkit", h.toolkit(version="1.20.1", hook_refused=None)),
    ("ctk.hook-read-only", "one without the hook", h.toolkit(version="1.19.1", hook_refused=None)),
)  # fmt: skip
NO_VERDICT: tuple[tuple[str, HostFacts, str], ...] = (
    ("os.mirror-sync", failed(NO_DRIVER, "dpkg: error processing package"), "and not for a mirror's files"),
    ("os.mirror-sync", failed(h.READY), "driver and toolkit are installed all the same"),
    ("os.mirror-sync", h.host(unread={"journal": "permission denied"}), "journal was not read"),
    ("ctk.device-rules", legacy(ANN, cgroup="v1"), "the cgroup hierarchy is v1"),
    ("ctk.device-rules", legacy(ANN, cgroup=None), "the cgroup hierarchy is not known"),
    ("ctk.device-rules", legacy(ANN, version="devel"), "cannot be compared"),
    ("ctk.device-rules", replace(legacy(ANN), files={h.CTK: FileFacts(h.CTK, unread="permission denied")}),
     "permission denied"),
    ("ctk.device-rules", legacy(platform="container"), "is not known"),
    ("rt.snap-docker", h.host(runtimes=(h.CONTAINERD_ENGINE,)), "docker is not installed"),
    ("rt.snap-docker", snap(handlers=()), "did not answer which runtimes it has"),
    ("ctk.hook-read-only", h.toolkit(hook_refused=None), "an older recording"),
    ("ctk.hook-read-only", replace(h.toolkit(hook_refused=None), unread={"hook_log": "no answer"}), "no answer"),
    ("ctk.hook-read-only", h.toolkit(version="devel"), "cannot be compared"),
)  # fmt: skip
