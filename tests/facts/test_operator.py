"""What NVIDIA's GPU Operator has on a host, as the probe tells it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpunode.facts.collect import assemble
from tests.facts.hosts import make_root, run_probe


@pytest.mark.parametrize(
    ("directories", "container", "operator"),
    [
        (("run/nvidia/driver/usr",), True, None),
        (("run/nvidia/driver",), False, None),
        (("run/nvidia/driver", "run/nvidia/toolkit", "usr/local/nvidia/toolkit"), False, "/usr/local/nvidia/toolkit"),
        (("usr/local/nvidia/toolkit",), False, None),
        (("run/nvidia/toolkit",), False, None),
    ],
    ids=[
        "a driver container", "a directory for one", "its toolkit, with a driver of the host",
        "left by an operator that is gone", "nothing installed yet",
    ],
)  # fmt: skip
def test_the_operator_is_in_charge_of_what_its_containers_brought(
    tmp_path: Path, directories: tuple[str, ...], container: bool, operator: str | None
) -> None:
    root = make_root(tmp_path)
    for directory in directories:
        (root / directory).mkdir(parents=True, exist_ok=True)
    host = assemble(run_probe(("sh",), root).stdout, "gpu07")
    assert (host.driver.container, host.toolkit.operator) == (container, operator)
