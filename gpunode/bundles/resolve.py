"""The packages of a bundle, resolved and fetched by the real resolver of the target's kind, here."""

from __future__ import annotations

from pathlib import Path

from gpunode.bundles import apt_root, rpm_root
from gpunode.bundles.archive import INDEX_BYTES
from gpunode.bundles.contents import Contents, Origin
from gpunode.bundles.index_dates import iso, newest
from gpunode.bundles.scratch import KEY_S, described, last_words, run_script
from gpunode.errors import StepFailed
from gpunode.foreign import read_file
from gpunode.model.bundle import BundledRepository, Manifest
from gpunode.transport.base import Transport


def fetched(transport: Transport, work: Path, contents: Contents, status: bytes) -> Manifest:
    """The bundle's files below `work`/bundle, as the repositories have them. `status`: the package database of a host
    like the target, in one file; empty for a host that has nothing.

    Raises StepFailed with the resolver's own words.
    """
    bundle = work / "bundle"
    for origin in contents.origins:
        if origin.key_url:
            _fetch_key(transport, origin, bundle / origin.key_path)
    resolver = rpm_root.fetched if contents.manager.package_format == "rpm" else apt_root.fetched
    packages = sorted(resolver(transport, work, contents, status), key=lambda one: one.path)
    files = {path.relative_to(bundle).as_posix(): described(path) for path in bundle.rglob("*") if path.is_file()}
    repositories = tuple(BundledRepository(o.kind, o.path, o.suite, o.components) for o in contents.origins)
    indexes = [read_file(bundle / one.release, INDEX_BYTES).decode("utf-8", "replace") for one in repositories]
    return Manifest(contents.target, iso(newest(indexes)), repositories, tuple(packages), files)


def _fetch_key(transport: Transport, origin: Origin, place: Path) -> None:
    done = run_script(transport, "repos/fetch_key", KEY_S, origin.key_url, str(place), *origin.key_pins)
    if done.code:
        raise StepFailed(
            f"the key of {origin.url} is not to be believed, or cannot be fetched",
            evidence=last_words(done),
            remedy="--trust-key names the fingerprint of a mirror's own key",
        )
