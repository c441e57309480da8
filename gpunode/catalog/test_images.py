"""Images that test a GPU in a cluster, as catalog/test_images.yaml lists them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from gpunode.catalog.rows import Row, rows
from gpunode.values import dataclass


@dataclass(frozen=True)
class VectorAdd:
    image: str  # "nvcr.io/nvidia/k8s/cuda-sample:vectoradd-cuda12.5.0"
    cuda: str  # "12.5"
    driver: int  # the oldest branch that runs it
    source: str
    checked: str
    grade: str


@cache
def vector_add_images() -> Sequence[VectorAdd]:
    """The preferred one first. Raises UsageError that names row and key of a fault in the file."""
    return tuple(_image(row) for row in rows("test_images.yaml", "images", "image"))


def image_for(branch: int | None) -> VectorAdd:
    """The first that a driver of this branch runs; None: the driver is not known, and is not old."""
    known = vector_add_images()
    return next((one for one in known if branch is None or branch >= one.driver), known[-1])


def _image(row: Row) -> VectorAdd:
    image = VectorAdd(row.text("image"), row.text("cuda"), row.number("driver"), *row.provenance())
    row.done()
    return image
