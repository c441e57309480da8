"""Where the driver comes from on this host: one source, and what the other sources then must not provide."""

from __future__ import annotations

from gpunode import resources
from gpunode.catalog.distros import Names, PackageSource
from gpunode.errors import UnsupportedHost, UsageError
from gpunode.model.action import Action, PutFile, RemoveFile
from gpunode.model.driver import DriverChoice, DriverOrigin
from gpunode.model.facts import HostFacts
from gpunode.model.files import FileFacts
from gpunode.model.installed import PINNING
from gpunode.model.plan import Step
from gpunode.model.spec import DriverSource
from gpunode.packages.registry import BACKENDS
from gpunode.planner.driver.available import Offer, offer_of
from gpunode.planner.kernel_packages import kernel_flavour
from gpunode.planner.site import Site

# Sorts after nvidia-driver-pinning's file: the first of several records takes precedence (apt_preferences(5)).
POLICY_NAME = "zz-gpunode-driver.pref"
# All of a driver and nothing of the container toolkit (nvidia-container-*, libnvidia-container*), as glob(7).
DRIVER_NAMES = (
    "nvidia-[!c]*",
    "nvidia-c[!o]*",
    "nvidia-com*",
    "libnvidia-[!c]*",
    "libnvidia-c[!o]*",
    "libnvidia-com*",
    "libcuda1",
    "libcudadebugger1",
    "libnvcuvid1",
    "libnvoptix1",
    "libnvsdm*",
    "cuda-drivers*",
    "firmware-nvidia-*",
    "xserver-xorg-video-nvidia*",
)
CUDA_ORIGIN = "developer.download.nvidia.com"


def chosen_source(site: Site) -> DriverOrigin:
    """Raises UnsupportedHost or UsageError when the one asked for is not there."""
    want, distro = site.spec.driver_source, site.distro
    if want is DriverSource.LOCAL:
        if site.spec.mirror is None:
            raise UsageError(
                "--driver-source local needs the directory or URL of a signed repository",
                evidence="packages without a signed index could be anybody's",
                remedy="--mirror /srv/nvidia names a directory on the host, --mirror https://mirror/nvidia a server",
            )
        return "local"
    if want is DriverSource.DISTRO:
        if distro.archive is None:
            raise UnsupportedHost(
                f"{distro.name}'s own archive has no driver that gpunode installs",
                evidence=f"catalog/distros.yaml names no packages for it ({distro.source})",
                remedy="--driver-source cuda takes NVIDIA's repository",
            )
        return "distro"
    if want is DriverSource.CUDA:
        if distro.cuda is None:
            raise UnsupportedHost(
                f"NVIDIA has no repository for {distro.name}",
                evidence=f"catalog/distros.yaml names no packages for it ({distro.source})",
                remedy="--driver-source distro takes the distribution's own archive",
            )
        return "cuda"
    return _automatic(site)


def _automatic(site: Site) -> DriverOrigin:
    """The distribution's signed modules under Secure Boot, its archive where NVIDIA has nothing, else NVIDIA's."""
    distro = site.distro
    lacking = distro.cuda is None or distro.cuda_url(site.host.os.machine) is None
    if distro.archive and (lacking or (distro.archive.signed and site.host.security.secure_boot)):
        return "distro"
    if distro.archive and _only_there(site):
        return "distro"
    return "cuda"


def _only_there(site: Site) -> bool:
    """A branch was asked for that the distribution alone still packages (470)."""
    branch, distro = site.spec.driver.branch, site.distro
    if branch is None or distro.archive is None or distro.cuda is None:
        return False
    return distro.cuda.names(branch) is None and distro.archive.names(branch) is not None


def why_source(site: Site, source: DriverOrigin) -> str | None:
    """The reason for a source that nobody named; None for the usual one."""
    if site.spec.driver_source is not DriverSource.AUTO or source != "distro":
        return None
    if site.distro.cuda is None or site.distro.cuda_url(site.host.os.machine) is None:
        return f"NVIDIA has no repository for {site.distro.name} on {site.host.os.machine}"
    if site.distro.archive and site.distro.archive.signed and site.host.security.secure_boot:
        return f"Secure Boot is on, and {site.distro.packaged}'s own modules are signed"
    return f"only {site.distro.packaged}'s own archive still has it"


def why_base(site: Site) -> str | None:
    """What is said of a derivative that gets the packages of another distribution."""
    base = site.distro.base
    return f"{site.distro.name} has the kernels and the archive of {base}" if base else None


def offer(site: Site, source: DriverOrigin) -> Offer:
    """What that source provides for this distribution."""
    return offer_of(source_title(site, source), _packages_of(site, source), site.catalog)


def source_title(site: Site, source: DriverOrigin) -> str:
    if source == "local":
        return f"the repository at {site.spec.mirror}"
    if source == "distro" and site.distro.archive is None:
        return "another repository than NVIDIA's"  # RPM Fusion's akmod-nvidia, on distributions that have no driver
    whose = site.distro.packaged
    return f"{whose}'s own archive" if source == "distro" else f"NVIDIA's repository for {whose}"


def names_of(site: Site, source: DriverOrigin, branch: int) -> Names:
    packages = _packages_of(site, source)
    names = packages.names(branch) if packages else None
    assert names is not None, "the branch was chosen from this offer"
    return names


def package_names(site: Site, choice: DriverChoice, source: DriverOrigin) -> tuple[str, ...]:
    """What is installed, the most telling name first. Raises UnsupportedHost where the fabric's own is not among it."""
    names = names_of(site, source, choice.branch)
    if lacking := _lacking(site, names):
        what, without = lacking
        raise UnsupportedHost(
            f"{source_title(site, source)} has no {what}",
            evidence=f"without it {without}",
            remedy="--driver-source cuda takes NVIDIA's repository"
            if site.distro.cuda
            else f"NVIDIA has no repository for {site.distro.name}: use a distribution that it has one for",
        )
    fabric = fabric_names(site, names)
    flavour = kernel_flavour(site.host, site.backend.default_flavour)
    return tuple(n.format(branch=choice.branch, flavour=flavour) for n in (*names.of(choice.flavour), *fabric))


def _lacking(site: Site, names: Names) -> tuple[str, str] | None:
    """What the fabric needs and the source has not, and how it is without.

    nvlsm has versions of its own, so one that was installed from elsewhere does. ComputeDomains bring nvidia-imex.
    """
    silent = "CUDA fails with error 802 (system not yet initialized)"
    if site.fabric in ("nvswitch", "nvlink5") and not names.fabric:
        return "fabric manager, which the NVSwitches here need", silent
    if site.fabric == "nvlink5" and not names.nvlink5 and "nvlsm" not in site.host.packages.installed:
        return "nvlsm, which the NVSwitches here need", silent
    if site.fabric == "imex" and not names.imex and site.spec.kubernetes.mode != "dra":
        return "nvidia-imex, which the GPUs of this tray need", "programs cannot use the memory of other trays"
    return None


def fabric_names(site: Site, names: Names) -> tuple[str, ...]:
    """What the fabric of this machine needs in addition to the driver; () for GPUs that stand alone."""
    by_fabric = {"nvswitch": names.fabric, "nvlink5": names.fabric and names.fabric + names.nvlink5, "imex": names.imex}
    return by_fabric.get(site.fabric or "", ())


def policy(site: Site, choice: DriverChoice) -> tuple[Action, ...]:
    """Preferences that keep the driver to its one source, where a repository's own priority does not."""
    if not site.backend.preferences:
        return ()
    path = f"{site.backend.preferences}/{POLICY_NAME}"
    stale = tuple(RemoveFile(f.path, expect_sha256=f.sha256) for f in old_pins(site.host, pin_package(site, choice)))
    text = policy_text(site, choice)
    before = next((f for f in site.host.packages.sources if f.path == path), site.host.file(path))
    if before.text == text:
        return stale
    return (
        *stale,
        PutFile(path, text, expect_sha256=before.sha256, any_before=True),
    )


def policy_step(site: Site, choice: DriverChoice) -> Step | None:
    """Preferences of gpunode's that say nothing any more are written anew, though the driver is kept."""
    path = f"{site.backend.preferences}/{POLICY_NAME}"
    there = next((f for f in site.host.packages.sources if f.path == path), None)
    if not site.backend.preferences or there is None or there.text is None or "Pin-Priority:" in there.text:
        return None
    put = PutFile(path, policy_text(site, choice), expect_sha256=there.sha256)
    return Step(
        "driver.policy", f"write {path} anew", "it is empty or damaged: the next upgrade could mix sources", (put,)
    )


def pin_package(site: Site, choice: DriverChoice) -> str | None:
    """The package of NVIDIA's repository that pins this branch or version; None where something else chooses."""
    if choice.source != "cuda" or names_of(site, choice.source, choice.branch).select != "pinning":
        return None
    return f"{PINNING}-{choice.version or choice.branch}"


def old_pins(host: HostFacts, keep: str | None) -> tuple[FileFacts, ...]:
    """Preferences of other pinning packages. They are conffiles, which remain when a package is removed,
    and two pins of one priority would let the higher version win for ever."""
    unchanged = () if keep is None else (keep, f"{keep}.pref")
    pins = tuple(f"{directory}/{PINNING}-" for directory in _preferences())
    return tuple(f for f in host.packages.sources if f.path.startswith(pins) and f.path.split("/")[-1] not in unchanged)


def policy_files() -> tuple[str, ...]:
    """Where `policy` writes, on whichever host."""
    return tuple(f"{directory}/{POLICY_NAME}" for directory in _preferences())


def _preferences() -> tuple[str, ...]:
    return tuple(manager.preferences for manager in BACKENDS.values() if manager.preferences)


def policy_text(site: Site, choice: DriverChoice) -> str:
    """A local repository is pinned by version too, since no pinning package need be in it."""
    local = choice.source == "local"
    origin = CUDA_ORIGIN
    if site.spec.mirror and choice.source != "distro":
        origin = _host_of(site.spec.mirror)
    return resources.render(
        "repo/driver.pref.j2",
        title=source_title(site, choice.source),
        names=" ".join(DRIVER_NAMES),
        origin=origin,
        version=(choice.version or str(choice.branch)) if local else "",
        # 990 beats every archive (500) and yields to what an admin pins above it; -1 is never installed.
        priority=-1 if choice.source == "distro" else 990,
    )


def _host_of(url: str) -> str:
    """As `Pin: origin` of apt_preferences(5) knows it: without a port; "" of a directory."""
    place = url.split("/")[2]
    return place[1:].partition("]")[0] if place.startswith("[") else place.partition(":")[0]


def _packages_of(site: Site, source: DriverOrigin) -> PackageSource | None:
    return site.distro.packages(source)
