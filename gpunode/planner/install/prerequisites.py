"""What must be right before packages are asked for anything."""

from __future__ import annotations

from gpunode import resources
from gpunode.advice import listing
from gpunode.model.action import Action, Run
from gpunode.model.plan import ForUndo, Step
from gpunode.planner.kernel.dkms import say_why, ways_out
from gpunode.planner.repos.repository import fetch_key, forget_key
from gpunode.planner.site import Site, through_proxy

SUBSCRIPTIONS = "subscription-manager"


def repair_step(site: Site) -> Step | None:
    """Finish what a killed transaction left half-configured or half-removed, before anything else is asked for.

    The package manager may refuse all else until then; and what is still selected for removal can go at any time.
    """
    broken = sorted(n for n, p in site.host.packages.installed.items() if not p.configured and p.status[1:2] != "n")
    if not broken:
        return None
    return Step(
        "packages.repair",
        _finish(site, broken),
        "an earlier package transaction was interrupted; nothing else can be installed before it is finished",
        (through_proxy(say_why(site.backend.repair(broken), _ways_out(site, broken)), site.spec.proxy),),
        replan_after=True,
    )


def _finish(site: Site, broken: list[str]) -> str:
    removed = [name for name in broken if site.host.packages.installed[name].half_removed]
    others = [name for name in broken if name not in removed]
    words = [f"finish configuring {listing(others)}"] if others else []
    words += [f"keep {listing(removed)}, which an interrupted removal left behind"] if removed else []
    return "; ".join(words)


def _ways_out(site: Site, broken: list[str]) -> str:
    modules = [name for name in broken if name.endswith("-dkms")] or broken
    backend = site.backend
    return f"{backend.words('remove', *modules)} lets {backend.name} work again; then {ways_out(site, 'distro')}"


def _what(package: str | None) -> str:
    if package is None or "epel" in package:
        return "EPEL and the distribution's builder repository"
    return f"what {package} provides"


def _key(site: Site) -> tuple[list[Run], tuple[Action, ...]]:
    """A package from an address is no repository's: it is checked against the keys that the manager trusts already.

    And the rollback: the package ships an entry that uses the key, which is then not removed (rpm_keys.sh).
    """
    assert site.distro.before_key is not None, "a data test holds every row to it"
    url, fingerprint = site.distro.before_key
    keyring = f"{site.backend.key_directory}/gpunode-prerequisites{site.backend.key_suffix}"
    trust = site.backend.trust(keyring, url)
    return [fetch_key(url, keyring, (fingerprint,)), *([trust] if trust else [])], forget_key(site, keyring, url)


def _command(argv: tuple[str, ...]) -> Run:
    """Of a subscription's repository the same one of a cloud's, where the host is an image of that cloud."""
    if argv[0] != SUBSCRIPTIONS:
        return Run(argv, timeout_s=900, detach=True)
    return Run(
        ("sh", "-s", "--", *argv),
        timeout_s=900,
        stdin=resources.script("packages/dnf_codeready"),
        detach=True,
        description=f"{' '.join(argv)}, or in a cloud's RHEL image that cloud's own",
    )


def before_step(site: Site) -> Step | None:
    """Repositories that the driver's packages draw on (EPEL and CRB: dkms lives there)."""
    distro = site.distro
    if site.from_bundle:  # what the driver draws on is in its archives
        return None
    if not distro.before or distro.before_package in site.host.packages.installed:
        return None
    fetched = any(word.startswith("https://") for argv in distro.before for word in argv)
    runs, undo = _key(site) if fetched else ([], ())
    runs += [_command(tuple(word.format(machine=site.host.os.machine) for word in argv)) for argv in distro.before]
    return Step(
        "repo.prerequisites",
        f"enable {_what(distro.before_package)}",
        "packages that the driver draws on live there",
        tuple(through_proxy(run, site.spec.proxy) for run in runs),
        undo,
        changes_repositories=True,
        for_undo=ForUndo(for_good="prerequisites"),
    )
