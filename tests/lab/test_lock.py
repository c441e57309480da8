"""A second host made like the first one, by real apt: and it is as the first one's lock says."""

from __future__ import annotations

from pathlib import Path

from .lab import Lab
from .product_runs import Controller, expect
from .test_driver_change import versions


def test_a_host_that_is_set_up_by_a_lock_is_as_the_lock_says(lab: Lab, tmp_path: Path) -> None:
    first, second = (lab.host("debian12", gpu="h100", runtime="docker") for _ in range(2))
    me, lock = Controller("ssh", tmp_path / "home"), str(tmp_path / "gpu.lock")
    setup = ("setup", "--yes", "--trust-key", lab.repo_fingerprint)

    expect(me.gpunode(first, *setup, "--driver", "580"), 0)
    expect(me.gpunode(first, "lock", "--output", lock), 0)
    bare = expect(me.gpunode(second, "check", "--against", lock), 1)
    assert "driver: 580.178.04 is expected, none was found" in " ".join(bare.stdout.split())

    expect(me.gpunode(second, *setup, "--lock", lock), 0)
    assert versions(second) == versions(first) == {"580.178.04"}
    expect(me.gpunode(second, "check", "--against", lock), 0)
