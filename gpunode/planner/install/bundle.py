"""A bundle on a host: unpacked, and its part of the distribution's archive known to the package manager."""

from __future__ import annotations

from dataclasses import replace

from gpunode import resources
from gpunode.editing.diff import unified
from gpunode.errors import UnsupportedHost
from gpunode.model.action import Action, PutFile, Run
from gpunode.model.bundle import HOME, REPODATA, Bundle, BundledRepository
from gpunode.model.facts import HostFacts
from gpunode.model.files import FileFacts
from gpunode.model.plan import BUNDLE_STEP, BUNDLE_TIDY_STEP, Plan, Step
from gpunode.packages.base import Backend, Part, Repository
from gpunode.packages.registry import BACKENDS
from gpunode.planner.repos.repository import OWN_NAMES

SOURCES = frozenset(one.bundle_file for one in BACKENDS.values() if one.bundle_file)  # one of them on such a host
_UNPACK_S = 1800
_OTHER = "make one for this host with gpunode bundle create --target"
REMOVE = 'rm -rf -- "$1" "$1.old" "$1.new" "$1".*.part'  # all that is ever there, also what was sent and given up
# Where none is kept beside it, the unpacking did not come so far, or it was the same one: it stays as it is.
BACK = 'rm -rf -- "$1.new" "$1".*.part; [ ! -d "$1.old" ] || { rm -rf -- "$1"; mv -- "$1.old" "$1"; }'


def with_bundle(plan: Plan, host: HostFacts, bundle: Bundle | None) -> Plan:
    """The plan, with the bundle put on the host before anything that takes packages; as it is where nothing does, and
    where there is no bundle.

    Raises UnsupportedHost where the bundle is for another release or machine.
    """
    if bundle is None:
        return plan
    _refuse_another(host, bundle)
    if not any(step.installs or step.changes_repositories for step in plan.steps):
        return plan
    step = _step(host, bundle, _manager(host, bundle))
    if step is None:
        return plan
    last = (_TIDY,) if SOURCES & _paths(host) else ()
    return replace(plan, steps=(step, *plan.steps, *last))


def _refuse_another(host: HostFacts, bundle: Bundle) -> None:
    target, os = bundle.manifest.target, host.os
    release = os.version_id == target.version or os.version_id.startswith(f"{target.version}.")  # 9 is 9.6 as well
    if (os.id, os.machine) == (target.distribution, target.machine) and release:
        return
    raise UnsupportedHost(
        f"{host.hostname}: the bundle is for {target.distribution} {target.version} on {target.machine}, and this is "
        f"{os.id} {os.version_id} on {os.machine}".strip(),
        evidence=f"target in the manifest of {bundle.path}; os-release and uname -m of the host",
        remedy=_OTHER,
    )


def _manager(host: HostFacts, bundle: Bundle) -> Backend:
    """Raises UnsupportedHost where the host's manager reads no packages of such a bundle."""
    found = BACKENDS.get(host.packages.manager or "")
    kind = "rpm" if any(one.suite == REPODATA for one in bundle.manifest.repositories) else "deb"
    if found is not None and found.bundle_file and found.package_format == kind:
        return found.alone()
    raise UnsupportedHost(
        f"{host.hostname}: the bundle has {kind} packages, and its package manager takes none from a bundle",
        evidence=f"it is {found.name if found else 'none that gpunode knows'}; {bundle.path}",
        remedy=_OTHER,
    )


def _step(host: HostFacts, bundle: Bundle, manager: Backend) -> Step | None:
    """None where this very bundle is set up already."""
    parts = _parts(bundle)
    files = manager.bundle_files(bundle.sha256, parts, _keyring(host, bundle))
    before = {path: next((f for f in host.packages.sources if f.path == path), FileFacts(path)) for path in files}
    if all(before[path].text == text for path, text in files.items()):
        return None
    manifest = bundle.manifest
    unpack = Run(
        ("sh", "-s", "--", HOME, bundle.sha256),
        timeout_s=_UNPACK_S,
        stdin=resources.script("bundle/unpack"),
        description=f"unpack the bundle to {HOME}, where its SHA-256 is {bundle.sha256}",
    )
    puts: list[Action] = [PutFile(p, text, expect_sha256=before[p].sha256) for p, text in files.items()]
    # A source that is there already, of an earlier bundle, has other packages from now on.
    there = [
        Repository(name, "", "", "", path=path)
        for name in OWN_NAMES.values()
        if (path := manager.source_file(Repository(name, "", "", ""))[0]) in _paths(host)
    ]
    keys = manager.own_keys() if parts else None
    refresh = [manager.refresh([one]) for one in (*manager.bundle_indexes(parts), *there)]
    return Step(
        BUNDLE_STEP,
        f"unpack the bundle: {manifest.target}, {len(manifest.packages)} packages, indexes of {manifest.as_of[:10]}",
        "the packages come from it alone; the signatures of its indexes are verified here",
        (unpack, *puts, *([keys] if keys else []), *refresh),
        undo=(_back(host),),
        diff="\n".join(unified(path, before[path].text, text) for path, text in files.items()),
        serves=("driver", "cuda", "toolkit"),
        changes_repositories=True,
    )


# Not before the driver is there: what fails until then brings the bundle back that apt's sources name.
_TIDY = Step(
    BUNDLE_TIDY_STEP,
    "remove the bundle that was there before",
    "its packages are not needed any more",
    (Run(("rm", "-rf", "--", f"{HOME}.old"), description=f"remove {HOME}.old"),),
)


def _back(host: HostFacts) -> Run:
    if SOURCES & _paths(host):
        return Run(("sh", "-c", BACK, "sh", HOME), description="bring the bundle back that was there before")
    return Run(("sh", "-c", REMOVE, "sh", HOME), description=f"remove {HOME}")


def _paths(host: HostFacts) -> set[str]:
    return {file.path for file in host.packages.sources}


def _archives(bundle: Bundle) -> list[BundledRepository]:
    return [one for one in bundle.manifest.repositories if one.kind == "archive"]


def _parts(bundle: Bundle) -> tuple[Part, ...]:
    return tuple(
        Part(f"gpunode-bundle-{number}", f"file://{HOME}/{one.path}/", one.suite, one.components)
        for number, one in enumerate(_archives(bundle))
    )


def _keyring(host: HostFacts, bundle: Bundle) -> str:
    """apt: what signs `main` of the same release here; "": the manager's own trusted keys.

    A key that the host has for somebody else's repository alone (docker's has a suite "bookworm" as well) counts for
    nothing more by a bundle.
    """
    releases = {one.suite.partition("-")[0] for one in _archives(bundle)}
    mains = [
        one for one in host.packages.archives if "main" in one.components and one.suite.partition("-")[0] in releases
    ]
    return next((one.signed_by for one in mains if one.signed_by and one.signed_by.startswith("/")), "")
