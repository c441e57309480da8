"""Bundles made by the real dnf 4, dnf5 and zypper, and hosts without any route that are set up from them alone.

The hosts are Debian below and these managers above, with a package database and repositories of their own (foreign.py):
what is shown is how gpunode, a bundle and the manager go together, not the distribution around them.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from gpunode.bundles.archive import read_bundle
from gpunode.model.bundle import HOME, Manifest

from .authority import Signer
from .bundles import alone, altered, another_driver, builder_of, made, torn, typed
from .foreign import RPM_KEY
from .foreign_repositories import RPM_HOST
from .host import Host
from .lab import Lab
from .product_runs import expect, fingerprint_of_state
from .repositories import web_root
from .resolver_cases import ZYPPER, Case, dnf, go_back, move_on, packages
from .stubs import rpm, rpms
from .wide import cases


@dataclass(frozen=True)
class Site:
    """A distribution, and two drivers of it, of which the second comes later."""

    case: Case
    targets: tuple[str, str]
    lead: str  # a package that NVIDIA's repository has, by whose version a driver is known
    versions: tuple[str, str]
    database: str  # rpm's
    sources: str
    says_forged: str  # the manager's own words, as an expression
    says_foreign: str
    settles: bool = True  # False: of a driver with a known CVE every setup asks again whether a newer one has come


EL9 = Site(
    dnf("el9"), ("rocky-9/580", "rocky-9/595"), "nvidia-open", ("580.178.04", "595.91.07"), "rpmdb.sqlite",
    "/etc/yum.repos.d", "packages from local repository have incorrect checksum", "GPG|[Ss]ignature|not signed",
)  # fmt: skip
FEDORA = Site(
    dnf("fedora42"), ("fedora-42/580", "fedora-42/595"), "nvidia-open", ("580.178.04", "595.91.07"), "rpmdb.sqlite",
    "/etc/yum.repos.d", "checksum doesn't match|Cannot download nvidia-open", "GPG|[Ss]ignature|not signed",
)  # fmt: skip
# SUSE has one driver at a time: the second bundle is made when a newer one of the branch has come.
SLES = Site(
    ZYPPER, ("sles-15.6/580", "sles-15.6/580"), "nvidia-compute-utils-G06", rpms.SUSE_VERSIONS[:2], "rpmdb.sqlite",
    "/etc/zypp/repos.d", "[Dd]igest|[Cc]hecksum", "GPG|[Ss]ignature|not signed", settles=False,
)  # fmt: skip
SITES = (EL9, FEDORA, SLES)


def options(lab: Lab, site: Site) -> tuple[str, ...]:
    archives = [word for name in ("base", "crb") for word in ("--archive", f"http://{RPM_HOST}/{name}")]
    installed = ("--status", f"/var/lib/rpm/{site.database}")
    return (*archives, "--archive-keyring", RPM_KEY, *installed, "--trust-key", lab.repo_fingerprint)


def two_bundles(lab: Lab, site: Site, into: Path) -> tuple[Path, Path]:
    go_back(lab, site.case, 2)
    builder = builder_of(lab, site.case.distribution)
    old = made(builder, site.targets[0], "old.bundle", into, options(lab, site))
    move_on(lab, site.case, web_root(lab.trust), rpms.SUSE_VERSIONS[1])
    new = made(builder, site.targets[1], "new.bundle", into, options(lab, site))
    difference = expect(typed(builder, "bundle", "diff", "/root/old.bundle", "/root/new.bundle"), 1).stdout
    assert site.lead in difference
    lab.reset()
    return old, new


def by_a_stranger(lead: str, stranger: Signer) -> Callable[[Manifest, Path], None]:
    """The driver's package signed anew, in an index made anew: all hashes agree, and nobody knows the key."""

    def change(manifest: Manifest, tree: Path) -> None:
        file = tree / next(one.path for one in manifest.packages if one.name == lead)
        repository = tree / next(one.path for one in manifest.repositories if one.kind == "cuda")
        modules = next((repository / "repodata").glob("*modules.yaml*"), None)
        rpm.sign(stranger, [file])
        shutil.rmtree(repository / "repodata")
        rpm.index(repository, stranger, rpms.modules(rpms.VERSIONS) if modules else "")

    return change


def driver(host: Host, site: Site) -> str | None:
    return packages(host, site.case).get(site.lead)


def sources(host: Host, site: Site) -> str:
    return host.nsrun(f"ls {site.sources} | grep gpunode").stdout


@pytest.mark.parametrize("site", cases(SITES, (FEDORA,)), ids=lambda site: site.case.distribution)
def test_a_host_without_any_route_is_set_up_changed_and_undone(lab: Lab, tmp_path: Path, site: Site) -> None:
    old, new = two_bundles(lab, site, tmp_path)
    host = alone(lab, site.case.distribution, None, [old, new])
    before = packages(host, site.case)
    setup = ("setup", "--yes", "--only", "driver,toolkit", "--trust-key", lab.repo_fingerprint)

    expect(typed(host, *setup, "--bundle", "/root/old.bundle"), 0)
    assert driver(host, site) == site.versions[0]
    settled = fingerprint_of_state(host)
    again = expect(typed(host, *setup, "--bundle", "/root/old.bundle"), 0)
    assert driver(host, site) == site.versions[0]
    if site.settles:
        assert "no changes" in again.stdout
        assert fingerprint_of_state(host) == settled

    changed = typed(host, *setup, "--bundle", "/root/new.bundle")
    assert changed.returncode in (0, 5), changed.stdout + changed.stderr
    assert driver(host, site) == site.versions[1]
    assert not host.exists(f"{HOME}.old")
    assert host.path(f"{HOME}/SHA256").read_text().strip() == read_bundle(new).sha256

    undone = expect(typed(host, "undo", "--yes", "--packages", "-v"), 0)
    assert packages(host, site.case) == before, undone.stdout + undone.stderr
    assert not host.exists(HOME)
    assert sources(host, site) == ""


@pytest.mark.parametrize("site", cases(SITES, (FEDORA,)), ids=lambda site: site.case.distribution)
def test_what_is_not_the_signers_own_is_refused_by_name(lab: Lab, tmp_path: Path, site: Site) -> None:
    good = two_bundles(lab, site, tmp_path)[1]
    forged = altered(good, "forged", tmp_path, another_driver(site.lead))
    foreign = altered(good, "foreign", tmp_path, by_a_stranger(site.lead, lab.trust.stranger))
    host = alone(lab, site.case.distribution, None, [good, forged, foreign, torn(good, tmp_path)])
    setup = ("setup", "--yes", "--only", "driver,toolkit", "--trust-key", lab.repo_fingerprint)

    refused = expect(typed(host, *setup, "--bundle", "/root/torn.bundle"), 2)
    assert "torn.bundle was changed after it was made" in refused.stderr
    unknown = expect(typed(host, *setup[:-2], "--bundle", "/root/new.bundle"), 1)
    assert lab.repo_fingerprint in (unknown.stdout + unknown.stderr).replace(" ", "")
    for name, said in (("forged", site.says_forged), ("foreign", site.says_foreign)):
        answer = expect(typed(host, *setup, "--bundle", f"/root/{name}.bundle"), 1)
        words = " ".join((answer.stdout + answer.stderr).split())
        assert re.search(said, words), (name, words)
        assert driver(host, site) is None, name
        assert sources(host, site) == "", name
        assert not host.exists(f"{HOME}/MANIFEST.json"), name

    other = alone(lab, next(one for one in SITES if one is not site).case.distribution, None, [good])
    elsewhere = expect(typed(other, *setup, "--bundle", "/root/new.bundle"), 4)
    distribution, version = site.targets[1].partition("/")[0].split("-")
    assert f"the bundle is for {distribution} {version} on x86_64, and this is" in " ".join(elsewhere.stderr.split())
