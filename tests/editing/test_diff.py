"""Diffs that people read and logs keep: no secret may be legible in them."""

from __future__ import annotations

import pytest

from gpunode.editing import diff
from gpunode.editing.diff import MASK, masked, unified


@pytest.mark.parametrize(
    "line",
    [
        '"auth": "hunter2"',
        '{"identitytoken":"hunter2","x":1}',
        'password = "hunter2"',
        "password = 'hunter2'",
        'auth="hunter2"',
        '"registry.auth.token": "a \\" hunter2"',
        'Authorization = ["Bearer hunter2"]',
        '"http-proxy": "http://user:hunter2@proxy.example:3128"',
        'endpoint = ["https://hunter2@registry.example"]',
        "secret_key: hunter2",
    ],
)
def test_a_secret_is_masked(line: str) -> None:
    assert "hunter2" not in masked(line)
    assert MASK in masked(line)


@pytest.mark.parametrize(
    "line",
    [
        '"runtimes": {"nvidia": {"path": "/usr/bin/nvidia-container-runtime", "args": []}}',
        '[plugins."io.containerd.grpc.v1.cri".registry.configs."registry.example".auth]',
        'config_path = "/etc/containerd/certs.d"',
        '"registry-mirrors": ["https://mirror.example/path@2x"]',
        'default_runtime_name = "nvidia"',
    ],
)
def test_everything_else_remains_legible(line: str) -> None:
    assert masked(line) == line


def test_unified_shows_what_changes_and_hides_what_is_secret() -> None:
    diff = unified("/etc/x", 'password = "hunter2"\na = 1\n', 'password = "hunter2"\na = 2\n')
    assert diff.splitlines() == [
        "--- /etc/x",
        "+++ /etc/x",
        "@@ -1,2 +1,2 @@",
        f' password = "{MASK}"',
        "-a = 1",
        "+a = 2",
    ]


def test_a_new_file_is_compared_to_nothing() -> None:
    assert unified("/etc/x", None, "a\n").splitlines()[0] == "--- /dev/null"


def test_the_same_change_on_the_next_host_is_not_worked_out_again() -> None:
    made = diff._remembered.cache_info().misses
    assert unified("/etc/same.toml", "[a]\n", "[b]\n") == unified("/etc/same.toml", "[a]\n", "[b]\n") != ""
    assert unified("/etc/same.toml", "", "[b]\n") != unified("/etc/same.toml", None, "[b]\n")
    assert diff._remembered.cache_info().misses == made + 3


def test_what_is_long_is_not_held_on_to() -> None:
    made = diff._remembered.cache_info().misses
    long = "# comment\n" * 7000
    assert "+[b]" in unified("/etc/long.toml", long, long + "[b]\n")
    assert diff._remembered.cache_info().misses == made
