"""Outside the rooms that talk to real programs, a test that starts one or opens a connection fails at once."""

from __future__ import annotations

import gc
import os
import signal
import socket
import subprocess
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# These rooms run real shells, sshd or the packaged product; everything else is text in, value out.
REAL_ROOMS = (
    "cluster",
    "export",
    "facts",
    "engines",
    "transport",
    "apply",
    "lab",
    "cli",
    "offline",
    "fleet",
    "hostile",
    "release",
    "docs",
)
REAL_FILES = (
    "test_converge.py",
    "test_packaging.py",
    "test_scripts.py",
    "test_demo.py",
    "test_readme.py",
    "test_fetch_key.py",
    "test_at_lead_version.py",
    "test_module_scripts.py",
    "test_kubelet_verify.py",
    "test_repo_scripts.py",
    "test_rpm_own_keys.py",
    "test_a_strangers_manager.py",
    "test_retry_leaves_nothing.py",
    "test_silent_mirror.py",
    "test_signed_modules.py",
    "test_program.py",
    "test_in_a_browser.py",
    "test_looks_in_a_browser.py",
    "test_hostile_in_a_browser.py",
)

# How long an example takes says how busy the machine is, and no test is about that. The same examples each time: what
# fails was changed. --hypothesis-profile=default looks for new ones.
settings.register_profile("gpunode", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("gpunode")
# A shell starts its background jobs with SIGINT ignored (`scripts/test &`, nohup), and so would every child of this
# process; tests that press Ctrl-C are about a gpunode that a person typed.
signal.signal(signal.SIGINT, signal.default_int_handler)
# Hosts are made here that other users look into: with umask 077 their directories would be closed to those.
os.umask(0o022)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is collected (20,000 tests and what they import) stays to the end: Python looks for garbage elsewhere."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


class TouchedTheWorld(BaseException):
    """From BaseException, so that no handler in the product can swallow it."""


def _is_real(path: Path) -> bool:
    relative = path.relative_to(Path(__file__).parent)
    return relative.parts[0] in REAL_ROOMS or relative.name in REAL_FILES


@pytest.fixture(autouse=True)
def _stay_inside(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if not _is_real(request.path):

        def refuse(*args: Any, **kwargs: Any) -> Any:
            raise TouchedTheWorld(f"{request.node.nodeid} started a program or opened a connection")

        monkeypatch.setattr(subprocess, "Popen", refuse)
        monkeypatch.setattr(socket.socket, "connect", refuse)
