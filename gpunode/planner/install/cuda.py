"""CUDA's libraries and compiler, in addition to the driver: named by version, so that no package pulls in a driver."""

from __future__ import annotations

from gpunode.catalog.libraries import CudaMajor
from gpunode.errors import UnsupportedHost
from gpunode.model.driver import DriverChoice
from gpunode.model.installed import installed_version
from gpunode.model.plan import Kept, Step
from gpunode.packages.base import Wanted, installation, missing
from gpunode.planner.repos.repository import Source, cuda_source, local_source
from gpunode.planner.site import Site, through_proxy

Outcome = Step | Kept
MINE = ("cuda-*", "lib*", "nsight-*")


def cuda_outcomes(site: Site, choice: DriverChoice | None) -> tuple[Outcome, ...]:
    """The toolkit that --cuda names; () when none was. Raises UnsupportedHost when driver or GPUs do not run it."""
    version = site.spec.cuda
    if version is None:
        return ()
    major = _known(site, version)
    branch = choice.branch if choice else _installed_branch(site)
    _refuse_old_driver(site, version, major, branch)
    _refuse_old_models(site, version, major)
    numbers = dict(zip(("major", "minor"), version.split("."), strict=True))
    package = site.catalog.cuda.install.package.format(**numbers)
    path = site.catalog.cuda.install.path.format(**numbers)
    if not missing([Wanted(package)], site.host.packages):
        return (Kept("cuda.install", f"CUDA {version} is installed in {path}"),)
    source = _source(site, version)
    refresh = (site.backend.refresh([source.repository]),) if source.step is None else ()
    runs = (*refresh, *installation(site.backend, [Wanted(package)], MINE))
    step = Step(
        "cuda.install",
        f"install {package} into {path}",
        f"{_level(site, version, branch)}; programs find it with PATH={path}/bin:$PATH",
        tuple(through_proxy(run, site.spec.proxy) for run in runs),
        undo=(site.backend.remove([package]),),
        installs="cuda",
    )
    repository = source.step or source.kept
    return (*([repository] if repository else []), step)


def _known(site: Site, version: str) -> CudaMajor:
    major = site.catalog.cuda.major(version)
    if major is None or version not in {t.version for t in site.catalog.cuda.toolkits}:
        raise UnsupportedHost(
            f"CUDA {version} is not a toolkit gpunode knows",
            evidence=f"it knows {', '.join(t.version for t in site.catalog.cuda.toolkits)}",
            remedy="choose one of those with --cuda",
        )
    return major


def _installed_branch(site: Site) -> int | None:
    version = installed_version(site.host)
    return int(version[:3]) if version else None


def _refuse_old_driver(site: Site, version: str, major: CudaMajor, branch: int | None) -> None:
    if branch is None or branch >= major.first_driver:
        return
    older = [t.version for t in site.catalog.cuda.toolkits if _runs(site, t.version, branch)]
    raise UnsupportedHost(
        f"CUDA {version} does not run on driver branch {branch}",
        evidence=f"CUDA {major.major} needs branch {major.first_driver} or newer (catalog/cuda.yaml)",
        remedy=f"choose a newer --driver, or --cuda {older[-1]}" if older else "choose a newer --driver",
    )


def _runs(site: Site, version: str, branch: int) -> bool:
    major = site.catalog.cuda.major(version)
    return major is not None and major.first_driver <= branch


def _refuse_old_models(site: Site, version: str, major: CudaMajor) -> None:
    """A toolkit that builds for none of the GPUs here is of no use; one that builds for some is."""
    dropped = [model for model in site.gpu_models if model.architecture in major.drops]
    if not dropped or len(dropped) < len(site.gpu_models):
        return
    last = [
        t.version
        for t in site.catalog.cuda.toolkits
        if (m := site.catalog.cuda.major(t.version)) and dropped[0].architecture not in m.drops
    ]
    title = site.catalog.architecture(dropped[0].architecture).title
    raise UnsupportedHost(
        f"CUDA {version} no longer builds for {title} ({dropped[0].name})",
        evidence=f"CUDA {major.major} dropped {', '.join(major.drops)} (catalog/cuda.yaml)",
        remedy=f"--cuda {last[-1]} is the last that does" if last else "leave --cuda out",
    )


def _level(site: Site, version: str, branch: int | None) -> str:
    """How the toolkit and the driver go together, in CUDA's own terms."""
    row = site.catalog.branch(branch) if branch is not None else None
    if row is None or row.cuda is None:
        return f"CUDA {version} was asked for"
    if _numbers(version) <= _numbers(row.cuda):
        return f"driver branch {row.number} runs CUDA up to {row.cuda}"
    return (
        f"driver branch {row.number} has CUDA {row.cuda}: "
        f"{version} runs on it by minor version compatibility, PTX does not"
    )


def _source(site: Site, version: str) -> Source:
    if site.spec.driver_source.value == "local":
        return local_source(site)
    if site.distro.cuda_url(site.host.os.machine) is None:
        raise UnsupportedHost(
            f"CUDA {version} has no packages for {site.distro.name} on {site.host.os.machine}",
            evidence="they come from NVIDIA's repository, which has no directory for it",
            remedy="leave --cuda out, or run CUDA programs in containers, which ship their own",
        )
    return cuda_source(site)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
