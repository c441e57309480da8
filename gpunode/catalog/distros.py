"""Distributions: which directory, key, package names and commands stand for a release."""

from __future__ import annotations

from dataclasses import replace

from gpunode.catalog.rows import Row, rows
from gpunode.model.driver import Grade, ModuleFlavour
from gpunode.model.facts import OsFacts
from gpunode.model.key_pins import CHECKSUM
from gpunode.values import dataclass

# Where DKMS keeps its signing key unless its framework.conf says otherwise (dkms(8), mok_signing_key).
DKMS_KEY = ("/var/lib/dkms/mok.key", "/var/lib/dkms/mok.pub")
SELECTIONS = ("pinning", "module", "versionlock", "version", "name", "match", "newest")
CUDA_REPOSITORIES = "https://developer.download.nvidia.com/compute/cuda/repos"
# NVIDIA's names of uname -m in the repository's path; the driver for aarch64 servers is "sbsa".
ARCHITECTURE_DIRECTORIES = {"x86_64": "x86_64", "aarch64": "sbsa"}


@dataclass(frozen=True)
class Names:
    """What some branches are called in one source; {branch}, {version} and {flavour} (of the kernel) are filled in."""

    branches: tuple[int, ...]  # exactly these; empty: all from `first` to `last`
    first: int
    last: int | None  # None: no end in sight
    select: str  # one of SELECTIONS: how one branch is chosen among those that the source provides
    open: tuple[str, ...]  # () where the source has no open modules
    proprietary: tuple[str, ...]
    fabric: tuple[str, ...]  # with NVSwitches
    nvlink5: tuple[str, ...]  # further ones for HGX B200 and B300
    imex: tuple[str, ...]  # for GB200 and GB300 trays
    signed: tuple[str, ...]  # flavours that come built and signed with a key the firmware trusts: nothing to enrol
    transitional: tuple[tuple[int, int], ...] = ()  # (570, 580): the packages of 570 install 580 today

    def carries(self, branch: int) -> bool:
        if self.branches:
            return branch in self.branches
        return self.first <= branch and (self.last is None or branch <= self.last)

    def of(self, flavour: ModuleFlavour) -> tuple[str, ...]:
        return self.open if flavour == "open" else self.proprietary


@dataclass(frozen=True)
class PackageSource:
    """One place a distribution gets drivers from; `rolling`: only its newest, whichever that is."""

    sets: tuple[Names, ...]
    rolling: bool = False

    def names(self, branch: int) -> Names | None:
        """What a branch is called here; also one whose packages have become transitional: hosts still have it."""
        return next((s for s in self.sets if self.rolling or s.carries(branch)), None)

    @property
    def transitional(self) -> dict[int, int]:
        return {old: new for names in self.sets for old, new in names.transitional}

    @property
    def signed(self) -> bool:
        return any(s.signed for s in self.sets)

    @property
    def fabric(self) -> tuple[str, ...]:
        return next((s.fabric for s in self.sets if s.fabric), ())


@dataclass(frozen=True)
class OtherKernel:
    """A kernel whose headers have other names than those of the distribution's own."""

    release: str  # what uname -r contains: "uek."
    headers: tuple[str, ...]
    follow: tuple[str, ...]  # (package of new kernels, package of their headers); () where headers follow by themselves
    toolset: bool  # built with a newer gcc than the default, which lies in /opt/rh


@dataclass(frozen=True)
class Distro:
    name: str  # "Ubuntu 24.04"
    id: str  # os-release ID
    versions: tuple[str, ...]
    codenames: tuple[str, ...]
    platform: str | None  # "ubuntu2404"; None: NVIDIA has no repository for it
    manager: str
    key_file: str | None
    fingerprint: str | None  # 40 hex digits; None: not known to anybody we could ask
    key_checksum: str | None  # sha256 of the key's file without its Version line, where NVIDIA publishes that alone
    select: str
    headers: tuple[str, ...]
    kernels: tuple[OtherKernel, ...]
    follow: bool  # a headers package that follows the kernel meta-package exists
    compiler: str | None  # the package of gcc {major}, where headers do not depend on the kernel's own
    extra_modules: str | None  # the package with the rest of the modules of {release}, where one may be without it
    initramfs: tuple[str, ...]
    mok: tuple[str, str]  # the private key and the certificate that its DKMS signs modules with
    cuda: PackageSource | None  # NVIDIA's repository
    archive: PackageSource | None  # the distribution's own
    components: tuple[str, ...]  # of the distribution's archive, in addition to main, that driver packages draw on
    machines: tuple[str, ...]  # uname -m that NVIDIA's repository is built for
    toolkit: tuple[
        str, ...
    ]  # the distribution's own packages of the container toolkit; (): NVIDIA's repository has them
    refused: str | None  # why gpunode installs no driver on it
    way: str | None  # how one is installed there all the same; None: nothing is known but "manually"
    base: str | None  # the distribution that it is made from, whose kernels, archive and names are meant
    before: tuple[tuple[str, ...], ...]
    before_package: str | None
    before_key: tuple[str, str] | None  # address and fingerprint of the key of what `before` installs from an address
    source: str
    checked: str
    grade: Grade

    @property
    def packaged(self) -> str:
        """Whose packages they are: its own, or those of what it is made from."""
        return self.base or self.name

    @property
    def key_pins(self) -> tuple[str, ...]:
        """What its key in NVIDIA's repository is known by (model/key_pins.py); (): --trust-key has to name it."""
        checksum = f"{CHECKSUM}{self.key_checksum}" if self.key_checksum else None
        return tuple(pin for pin in (self.fingerprint, checksum) if pin)

    def matches(self, os: OsFacts) -> bool:
        if os.id != self.id:
            return False
        if "*" in self.versions:
            return True
        if os.version_id == "":
            # Debian testing and sid have no VERSION_ID; "trixie/sid" style names appear on both.
            names = {os.codename, *os.pretty_name.lower().replace("/", " ").split()}
            return "" in self.versions or bool(names & set(self.codenames))
        return os.version_id in self.versions or os.version_id.split(".")[0] in self.versions

    def kernel(self, release: str) -> OtherKernel | None:
        """What is special about the kernel with this uname -r; None for the distribution's own."""
        return next((other for other in self.kernels if other.release in release), None)

    def headers_of(self, release: str) -> tuple[str, ...]:
        """The packages with the headers of one kernel: ("linux-headers-6.8.0-51-generic",)"""
        other = self.kernel(release)
        plain = release.replace(other.release, "") if other else release
        return tuple(name.format(release=release, plain=plain) for name in (other.headers if other else self.headers))

    def cuda_url(self, machine: str) -> str | None:
        """The directory of this release in NVIDIA's CUDA repository; None for a machine it is not built for."""
        directory = ARCHITECTURE_DIRECTORIES.get(machine) if machine in self.machines else None
        return f"{CUDA_REPOSITORIES}/{self.platform}/{directory}/" if directory and self.platform else None

    def packages(self, name: str) -> PackageSource | None:
        """ "cuda" and "local" hold NVIDIA's packages under NVIDIA's names, "distro" the distribution's own."""
        return self.archive if name == "distro" else self.cuda


def read_distros() -> tuple[Distro, ...]:
    return tuple(_distro(row) for row in rows("distros.yaml", "distros", "name"))


def derivative(os: OsFacts, like: Distro) -> Distro:
    """A stand-in for a distribution without a row whose os-release says that it is like one that has a row.

    The toolkit's repository is one for all that read its format; of kernels and driver packages nothing is known.
    """
    return replace(
        like,
        name=os.pretty_name or f"{os.id} {os.version_id}".strip(),
        id=os.id,
        platform=None,
        key_file=None,
        fingerprint=None,
        key_checksum=None,
        kernels=(),
        extra_modules=None,
        cuda=None,
        archive=None,
        before=(),
        before_package=None,
        before_key=None,
        refused=f"of its kernels nothing is known but that it is like {like.name.split()[0]}",
        way="install the driver that its own archive has",
        base=None,
        source=f"no row has ID={os.id}; ID_LIKE={' '.join(os.id_like)}",
        grade="unverified",
    )


def _distro(row: Row) -> Distro:
    match, key = row.row("match"), row.row("key")
    select = row.text("select", SELECTIONS)
    source, checked, grade = row.provenance()
    distro = Distro(
        name=row.text("name"),
        id=match.text("id"),
        versions=match.texts("versions"),
        codenames=match.texts("codenames"),
        platform=row.maybe_text("platform"),
        manager=row.text("manager"),
        key_file=key.maybe_text("file"),
        fingerprint=key.maybe_text("fingerprint"),
        key_checksum=key.maybe_text("sha256"),
        select=select,
        headers=row.texts("headers"),
        kernels=tuple(_kernel(other) for other in row.maybe_rows("kernels")),
        follow=row.flag("follow"),
        compiler=row.maybe_text("compiler"),
        extra_modules=row.maybe_text("extra_modules"),
        initramfs=row.texts("initramfs"),
        mok=_mok(row),
        cuda=_source(row, "cuda", select),
        archive=_source(row, "archive", "name"),
        components=row.maybe_texts("components"),
        machines=row.maybe_texts("machines") or tuple(ARCHITECTURE_DIRECTORIES),
        toolkit=row.maybe_texts("toolkit"),
        refused=row.maybe_text("refused"),
        way=row.maybe_text("way"),
        base=row.maybe_text("base"),
        before=row.lists("before"),
        before_package=row.maybe_text("before_package"),
        before_key=_before_key(row),
        source=source,
        checked=checked,
        grade=grade,
    )
    for part in (row, match, key):
        part.done()
    return distro


def _kernel(row: Row) -> OtherKernel:
    other = OtherKernel(
        release=row.text("release"),
        headers=row.texts("headers"),
        follow=row.maybe_texts("follow"),
        toolset=row.maybe_flag("toolset"),
    )
    row.done()
    return other


def _before_key(row: Row) -> tuple[str, str] | None:
    key = row.maybe_row("before_key")
    if key is None:
        return None
    pair = (key.text("url"), key.text("fingerprint"))
    key.done()
    return pair


def _mok(row: Row) -> tuple[str, str]:
    paths = row.maybe_row("mok")
    if paths is None:
        return DKMS_KEY
    pair = (paths.text("key"), paths.text("certificate"))
    paths.done()
    return pair


def _source(row: Row, key: str, select: str) -> PackageSource | None:
    sets = tuple(_names(r, select) for r in row.maybe_rows(key))
    return PackageSource(sets, any(s.select == "newest" for s in sets)) if sets else None


def _names(row: Row, select: str) -> Names:
    own = row.maybe_text("select")
    if own is not None and own not in SELECTIONS:
        raise row.fault("select", f"{own!r} is not {' | '.join(SELECTIONS)}")
    names = Names(
        branches=row.maybe_numbers("branches"),
        first=row.maybe_number("first") or 0,
        last=row.maybe_number("last"),
        select=own or select,
        open=row.maybe_texts("open"),
        proprietary=row.maybe_texts("proprietary"),
        fabric=row.maybe_texts("fabric"),
        nvlink5=row.maybe_texts("nvlink5"),
        imex=row.maybe_texts("imex"),
        signed=row.maybe_texts("signed"),
        transitional=tuple(_transitional(stub) for stub in row.maybe_rows("transitional")),
    )
    row.done()
    return names


def _transitional(row: Row) -> tuple[int, int]:
    pair = (row.number("branch"), row.number("installs"))
    row.done()
    return pair
