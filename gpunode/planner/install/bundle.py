"""A bundle on a host: unpacked, its archive as one more source of apt's, and preferred to what no network reaches."""

from __future__ import annotations

from dataclasses import replace

from gpunode import resources
from gpunode.editing.diff import unified
from gpunode.errors import UnsupportedHost
from gpunode.model.action import Action, PutFile, Run
from gpunode.model.bundle import HOME, Bundle, BundledRepository
from gpunode.model.facts import HostFacts
from gpunode.model.files import FileFacts
from gpunode.model.plan import BUNDLE_STEP, BUNDLE_TIDY_STEP, Plan, Step
from gpunode.packages.base import Repository
from gpunode.packages.registry import backend
from gpunode.planner.repos.repository import OWN_NAMES

_MANAGER = backend("apt")  # whose packages a bundle has
SOURCE = f"{_MANAGER.source_directory}/gpunode-bundle.sources"
PREFERENCES = f"{_MANAGER.preferences}/gpunode-bundle.pref"
_UNPACK_S = 1800
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
    step = _step(host, bundle)
    if step is None:
        return plan
    last = (_TIDY,) if SOURCE in _paths(host) else ()
    return replace(plan, steps=(step, *plan.steps, *last))


def _refuse_another(host: HostFacts, bundle: Bundle) -> None:
    target, os = bundle.manifest.target, host.os
    if (os.id, os.version_id, os.machine) == (target.distribution, target.version, target.machine):
        return
    raise UnsupportedHost(
        f"{host.hostname}: the bundle is for {target.distribution} {target.version} on {target.machine}, and this is "
        f"{os.id} {os.version_id} on {os.machine}".strip(),
        evidence=f"target in the manifest of {bundle.path}; os-release and uname -m of the host",
        remedy="make one for this host with gpunode bundle create --target",
    )


def _step(host: HostFacts, bundle: Bundle) -> Step | None:
    """None where this very bundle is set up already."""
    files = {SOURCE: _source(host, bundle), PREFERENCES: resources.template_text("repo/bundle.pref.j2")}
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
    stale = [
        path for name in OWN_NAMES.values() if (path := f"{_MANAGER.source_directory}/{name}.sources") in _paths(host)
    ]
    sources = ([SOURCE] if _archives(bundle) else []) + stale
    refresh = [_MANAGER.refresh([Repository("", "", "", "", path=path)]) for path in sources]
    return Step(
        BUNDLE_STEP,
        f"unpack the bundle: {manifest.target}, {len(manifest.packages)} packages, indexes of {manifest.as_of[:10]}",
        "the packages come from it alone; the signatures of its indexes are verified here",
        (unpack, *puts, *refresh),
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
    if SOURCE in _paths(host):
        return Run(("sh", "-c", BACK, "sh", HOME), description="bring the bundle back that was there before")
    return Run(("sh", "-c", REMOVE, "sh", HOME), description=f"remove {HOME}")


def _paths(host: HostFacts) -> set[str]:
    return {file.path for file in host.packages.sources}


def _archives(bundle: Bundle) -> list[BundledRepository]:
    return [one for one in bundle.manifest.repositories if one.kind == "archive"]


def _source(host: HostFacts, bundle: Bundle) -> str:
    """The bundle's part of the distribution's archive, by the keys that the host's own sources name for it."""
    archives = [
        {"url": f"file:{HOME}/{one.path}/", "suite": one.suite, "components": " ".join(one.components)}
        for one in _archives(bundle)
    ]
    keyring = _keyring(host, bundle)
    return resources.render("repo/bundle.sources.j2", sha256=bundle.sha256, archives=archives, keyring=keyring)


def _keyring(host: HostFacts, bundle: Bundle) -> str:
    """What signs `main` of the same release here; "": apt's own trusted keys. A key that the host has for somebody
    else's repository alone (docker's has a suite "bookworm" as well) counts for nothing more by a bundle.
    """
    releases = {one.suite.partition("-")[0] for one in _archives(bundle)}
    mains = [
        one for one in host.packages.archives if "main" in one.components and one.suite.partition("-")[0] in releases
    ]
    return next((one.signed_by for one in mains if one.signed_by and one.signed_by.startswith("/")), "")
