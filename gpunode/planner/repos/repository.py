"""Package repositories: the key is verified by its full fingerprint before any trust store sees it."""

from __future__ import annotations

from collections.abc import Callable, Collection

from gpunode import resources
from gpunode.editing.diff import unified
from gpunode.errors import UnsupportedHost
from gpunode.model.action import Action, PutFile, Run
from gpunode.model.files import FileFacts
from gpunode.model.key_pins import key_name, pin_kind
from gpunode.model.plan import Kept, Product, Step, VendorRepository
from gpunode.model.spec import DriverSource
from gpunode.packages.base import Repository, Wanted, download_and_install, missing
from gpunode.planner.repos.claims import Claim
from gpunode.planner.repos.cleanup import standing
from gpunode.planner.site import Site, through_proxy
from gpunode.remedy import Remedy, RepairAction, setup
from gpunode.values import dataclass

CUDA_HOST = "https://developer.download.nvidia.com"
TOOLKIT_HOST = "https://nvidia.github.io"
OWN_NAMES: dict[VendorRepository, str] = {
    "cuda": "gpunode-cuda",
    "local": "gpunode-local",
    "toolkit": "gpunode-container-toolkit",
}
SERVES: dict[VendorRepository, tuple[Product, ...]] = {
    "cuda": ("driver", "cuda"),
    "local": ("driver", "cuda", "toolkit"),
    "toolkit": ("toolkit",),
}


@dataclass(frozen=True)
class Source:
    """One vendor repository as it is wanted, or as it is on the host already (`step` None)."""

    repository: Repository
    step: Step | None
    kept: Kept | None
    claim: Claim  # what an entry must contain to be this repository


def claims(site: Site, names: Collection[VendorRepository]) -> tuple[Claim, ...]:
    """Of the repositories that a plan's steps set up, or that stand already."""
    known: dict[VendorRepository, Callable[[Site], Source]]
    known = {"cuda": cuda_source, "toolkit": toolkit_source, "local": local_source}
    return tuple(source(site).claim for name, source in known.items() if name in names)


def driver_source(site: Site, name: str) -> Source | None:
    """The repository behind "cuda" or "local"; None for "distro", whose archive the host has."""
    if name == "local":
        return local_source(site)
    return cuda_source(site) if name == "cuda" else None


def local_source(site: Site) -> Source:
    """One directory or server with a flat, signed repository: packages, index, and its key as key.asc next to them.

    Its key is whoever's made it, so --trust-key names it; a plain copy of NVIDIA's directory is signed by NVIDIA's.
    """
    assert site.spec.mirror is not None, "chosen_source has seen to that"
    url = f"{site.spec.mirror.rstrip('/')}/"
    key_url = f"{url}key.asc"
    # The packages inside keep their vendor's signatures; the index, which this key signs, holds their hashes.
    return _source(
        site, "local", "the local repository", url, key_url, () if site.spec.trust_keys else site.distro.key_pins,
        gpg_check_packages=False, priority=50,
    )  # fmt: skip


def cuda_source(site: Site) -> Source:
    """NVIDIA's CUDA repository. Raises UnsupportedHost when its key is not known and --trust-key does not name one."""
    url = site.distro.cuda_url(site.host.os.machine)
    if url is None:
        raise UnsupportedHost(
            f"NVIDIA builds no driver packages for {site.distro.name} on {site.host.os.machine}",
            evidence=f"its repository for it holds {', '.join(site.distro.machines)} (catalog/distros.yaml)",
            remedy=Remedy(
                RepairAction.UPGRADE, "install the driver manually, then ", setup("--only", "toolkit,runtime")
            ),
        )
    key_file = site.distro.key_file or "cuda-archive-keyring.gpg"
    return _source(
        site,
        "cuda",
        "NVIDIA's CUDA repository",
        _mirrored(url, CUDA_HOST, site),
        f"{url}{key_file}",
        site.distro.key_pins,
        priority=50,
    )


def toolkit_source(site: Site) -> Source:
    """The container toolkit's repository; with --driver-source local everything comes from that one."""
    if site.spec.driver_source is DriverSource.LOCAL and site.spec.mirror is not None:
        return local_source(site)
    toolkit = site.catalog.toolkit
    pattern = toolkit.apt_url if site.backend.package_format == "deb" else toolkit.rpm_url
    url = _mirrored(pattern.format(channel=site.spec.toolkit_channel), TOOLKIT_HOST, site)
    # The vendor's own .repo trusts packages through the signed metadata (repo_gpgcheck=1, gpgcheck=0).
    return _source(
        site,
        "toolkit",
        "NVIDIA's container toolkit repository",
        url,
        toolkit.key_url,
        (toolkit.fingerprint,),
        gpg_check_packages=False,
    )


def tools_step(site: Site) -> Step | None:
    """What fetching and verifying a key needs and the host lacks."""
    wanted = [Wanted(name) for name in site.backend.key_tools]
    lacking = [w for w in missing(wanted, site.host.packages) if not _stands_in(w.name, site)]
    if not lacking:
        return None
    names = ", ".join(w.name for w in lacking)
    actions = (site.backend.refresh_all(), *download_and_install(site.backend, lacking))
    return Step(
        "repo.tools",
        f"install {names} from {site.distro.name}'s own archive",
        "a repository's key is fetched and its fingerprint computed on the host",
        tuple(through_proxy(run, site.spec.proxy) for run in actions),
        changes_repositories=True,  # their lists are fetched anew
    )


def _stands_in(name: str, site: Site) -> bool:
    """gpg without its meta-package, curl-minimal, wget: whatever does the same work."""
    gpg = {"gpg", "gpg2", "gnupg", "gnupg2"}
    others = gpg if name in gpg else {"curl": ("curl-minimal", "wget")}.get(name, ())
    return any(other in site.host.packages.installed for other in others)


def _source(
    site: Site,
    name: VendorRepository,
    title: str,
    url: str,
    key_url: str,
    pinned: tuple[str, ...],
    *,
    gpg_check_packages: bool = True,
    priority: int | None = None,
) -> Source:
    backend, own = site.backend, OWN_NAMES[name]
    keyring = f"{backend.key_directory}/{own}{backend.key_suffix}"
    step_id = f"repo.{name}"
    repository = Repository(own, title, url, keyring, gpg_check_packages, priority=priority)
    path, text = backend.source_file(repository)
    current = next((f for f in site.host.packages.sources if f.path == path), FileFacts(path))
    trusted = _trusted(site, title, key_url, pinned)
    claim = Claim(title, url, frozenset(trusted), site.host.os.machine, site.backend.signs_indexes)
    if current.text == text and claim.owns(keyring, site.host.packages):
        return Source(repository, None, Kept(step_id, f"{title} is set up", repository=name), claim)
    existing_entry = standing(site.host, site.distro, claim) if current.text is None else None
    if existing_entry is not None:
        file, entry = existing_entry
        existing = repository._replace(id=entry.name or repository.id, path=file.path)
        kept = Kept(step_id, f"{title} is in {file.path} already", repository=name)
        return Source(existing, None, kept, claim)
    key_url = _mirrored_key(key_url, site)
    trust = backend.trust(keyring, key_url)
    actions: tuple[Action, ...] = (
        through_proxy(fetch_key(key_url, keyring, trusted), site.spec.proxy),
        *([trust] if trust else []),
        PutFile(path, text, expect_sha256=current.sha256),
        through_proxy(backend.refresh([repository]), site.spec.proxy),
    )
    alone = "" if trust else ", for this repository alone"
    step = Step(
        step_id,
        f"add {title}, key {key_name(trusted, key_url)} checked by {pin_kind(trusted[0])}",
        # A manager with a store of its own trusts a key for all repositories.
        f"the packages come from here; only the key that is pinned by {pin_kind(trusted[0])} is trusted{alone}",
        actions,
        undo=forget_key(site, keyring, key_url),
        diff=unified(path, current.text, text),
        serves=SERVES[name],
        repository=name,
        changes_repositories=True,
    )
    return Source(repository, step, None, claim)


def forget_key(site: Site, keyring: str, url: str) -> tuple[Action, ...]:
    """The rollback of fetching and trusting a key; a key file that was there before is not removed."""
    distrust = site.backend.distrust(keyring, url)
    remove = Run(
        ("rm", "-f", "--", keyring), description=f"remove {keyring}"
    )  # no change that gpunode undo would restore
    fresh = keyring not in site.host.packages.keys
    return (*([distrust] if distrust else []), *([remove] if fresh else []))


def fetch_key(url: str, keyring: str, pins: tuple[str, ...]) -> Run:
    """Fetch a key, and write it to `keyring` when one of these is its full fingerprint, or its file's checksum; fails
    (65) when none is.
    """
    script = resources.script("repos/fetch_key")
    return Run(
        ("sh", "-s", "--", url, keyring, *pins),
        timeout_s=180,
        stdin=script,
        retry=(3.0, 10.0),
        files=(keyring,),
        description=f"fetch {url}, check it by {pin_kind(pins[0])} ({' or '.join(pins)}), write {keyring}",
    )


def _trusted(site: Site, title: str, key_url: str, pinned: tuple[str, ...]) -> tuple[str, ...]:
    trusted = tuple(dict.fromkeys((*pinned, *site.spec.trust_keys)))
    if not trusted:
        raise UnsupportedHost(
            f"the signing key of {title} for {site.distro.name} is not known to gpunode",
            evidence=f"catalog/distros.yaml has no full fingerprint for {key_url}",
            remedy="look the fingerprint up where you trust it and name it: --trust-key FINGERPRINT (40 hex digits)",
        )
    return trusted


def _mirrored(url: str, vendor: str, site: Site) -> str:
    return url.replace(vendor, site.spec.mirror.rstrip("/"), 1) if site.spec.mirror else url


def _mirrored_key(url: str, site: Site) -> str:
    return _mirrored(_mirrored(url, CUDA_HOST, site), TOOLKIT_HOST, site)
