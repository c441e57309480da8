"""CUDA toolkits, MIG profiles and images: what goes with a driver, or ships one of its own."""

from __future__ import annotations

from collections.abc import Mapping

from gpunode.catalog.documents import document
from gpunode.catalog.rows import Row, rows
from gpunode.values import dataclass


@dataclass(frozen=True)
class CudaMajor:
    major: int
    first_driver: int  # the oldest branch that runs any toolkit of this major version
    drops: tuple[str, ...]  # architectures that its compiler no longer builds for
    source: str
    checked: str
    grade: str


@dataclass(frozen=True)
class CudaToolkit:
    version: str  # "13.0"
    driver: str  # the point release that it was released with
    source: str
    checked: str
    grade: str


@dataclass(frozen=True)
class CudaInstall:
    package: str  # "cuda-toolkit-{major}-{minor}"
    path: str  # "/usr/local/cuda-{major}.{minor}"
    source: str
    checked: str
    grade: str


@dataclass(frozen=True)
class Cuda:
    majors: tuple[CudaMajor, ...]
    toolkits: tuple[CudaToolkit, ...]
    install: CudaInstall

    def major(self, version: str) -> CudaMajor | None:
        """The row for "13.0"; None for a major version that is not described."""
        return next((m for m in self.majors if str(m.major) == version.split(".")[0]), None)


@dataclass(frozen=True)
class MigSet:
    name: str
    ids: tuple[str, ...]  # PCI device ids
    profiles: Mapping[str, int]  # "1g.10gb": how many of it one GPU holds
    balanced: Mapping[str, int]
    source: str
    checked: str
    grade: str


@dataclass(frozen=True)
class Image:
    """An image whose driver belongs to whoever made it."""

    mark: str  # path that tells it, "/etc/dgx-release"
    name: str  # "DGX OS"
    source: str
    checked: str
    grade: str


def read_images() -> tuple[Image, ...]:
    return tuple(_image(row) for row in rows("images.yaml", "images", "mark"))


def read_cuda() -> Cuda:
    install = Row("cuda.yaml", "install", document("cuda.yaml").get("install"))
    cuda = Cuda(
        tuple(_major(row) for row in rows("cuda.yaml", "majors", "major")),
        tuple(_toolkit(row) for row in rows("cuda.yaml", "toolkits", "version")),
        CudaInstall(install.text("package"), install.text("path"), *install.provenance()),
    )
    install.done()
    return cuda


def read_mig() -> tuple[MigSet, ...]:
    return tuple(_mig(row) for row in rows("mig.yaml", "sets", "name"))


def _image(row: Row) -> Image:
    image = Image(row.text("mark"), row.text("name"), *row.provenance())
    row.done()
    return image


def _major(row: Row) -> CudaMajor:
    major = CudaMajor(row.number("major"), row.number("first_driver"), row.texts("drops"), *row.provenance())
    row.done()
    return major


def _toolkit(row: Row) -> CudaToolkit:
    toolkit = CudaToolkit(row.text("version"), row.text("driver"), *row.provenance())
    row.done()
    return toolkit


def _mig(row: Row) -> MigSet:
    mig = MigSet(row.text("name"), row.texts("ids"), row.counts("profiles"), row.counts("balanced"), *row.provenance())
    row.done()
    return mig
