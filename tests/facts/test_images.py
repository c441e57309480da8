"""The marks of images that have their own driver, as their makers put them."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.facts.collect import assemble
from tests.facts.hosts import make_root, run_probe


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("etc/eks/nvidia-open-supported-devices-595.txt", "an Amazon EKS GPU image"),
        ("opt/aws/dlami/info", "an AWS Deep Learning AMI"),
        ("etc/eks/containerd-config.toml", None),
    ],
    ids=["EKS, one file for each major version", "Deep Learning AMI", "EKS without GPUs"],
)
def test_an_image_is_known_by_its_mark(tmp_path: Path, path: str, name: str | None) -> None:
    root = make_root(tmp_path)
    mark = root / path
    mark.parent.mkdir(parents=True)
    mark.touch()
    found = assemble(run_probe(("sh",), root).stdout, "gpu07").driver.image
    assert found == next((image.mark for image in load_catalog().images if image.name == name), None)
