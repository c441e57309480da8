"""Can the host find and reach repositories and registries? By its files alone: no packet is sent."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase

from gpunode.advice import listing
from gpunode.checks import needs
from gpunode.checks.registry import Context, check
from gpunode.checks.words import backend_of
from gpunode.model.entities import place
from gpunode.model.facts import HostFacts, RuntimeFacts
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Passed, Severity
from gpunode.model.system import NamedProxy, Outbound
from gpunode.remedy import Remedy, RepairAction

RESOLV_CONF = "/etc/resolv.conf"
LOGINS, SERVICES, PACKAGES = "logins", "all services", "the package manager"
# Whose setting a file is, by how its path begins; there are those of the package manager and of units too.
PLACES = {"/etc/environment": LOGINS, "/etc/profile": LOGINS, "/etc/systemd/system.conf": SERVICES}
NO_PROXY = ("direct", "_none_")  # as apt.conf(5) and dnf.conf(5) say that there is none
NAME_SERVER = Remedy(RepairAction.CONFIGURE, f"have {RESOLV_CONF} name a server: resolvectl status, nmcli device show")
EVERYWHERE = Remedy(
    RepairAction.CONFIGURE,
    "set the proxy there too: Environment=HTTPS_PROXY=... in a drop-in of the engine's unit and a restart, or in the "
    "package manager's configuration; or take it out where none is needed",
)


@check(
    "os.proxy-dns",
    Severity.WARNING,
    title="a name server is set, and a proxy is set everywhere or nowhere",
    reads=f"{RESOLV_CONF}; the proxies of logins, services, the package manager and the engines",
    remedy=EVERYWHERE,
    needs=(needs.gpu, needs.system),
)
def proxy_dns(host: HostFacts, context: Context) -> CheckOutcome | Passed:
    """No name server is set, or only some of what loads packages and images goes through the proxy that is set."""
    out = host.system.outbound if host.system else None
    if out is None:
        return NotApplicable("name servers and proxies are not in this recording")
    if out.resolv_conf != "present" or not out.name_server:
        return _no_server(out)
    named = {
        one: whose for one in out.proxies if one.host.lower() not in NO_PROXY and (whose := _whose(host, one.path))
    }
    needed = {whose for whose in named.values() if whose != PACKAGES}  # its own may be a cache of packages
    lacking = [whose for whose in _users(host, out) if needed and whose not in named.values()]
    if SERVICES in needed:
        lacking = [whose for whose in lacking if whose == PACKAGES]
    if LOGINS in needed:  # setup's own login may have it
        lacking = [whose for whose in lacking if whose != PACKAGES]
    if not lacking:
        return Passed(f"proxies: {_quoted(named)}") if named else None
    if out.unseen:
        return NotApplicable(
            f"{listing(out.unseen)} cannot be read: whether {listing(lacking)} has a proxy is not known"
        )
    return Finding(
        f"a proxy is set, and not for {listing(lacking)}",
        evidence=_quoted(named),
        remedy=EVERYWHERE,
        entities=tuple(place(one.path, one.line) for one in named),
    )


def _no_server(out: Outbound) -> Finding:
    says = {"dead": "is a link to a file that is missing", "absent": "is not there"}
    what = says.get(out.resolv_conf, "names no server")
    return Finding(
        "no name server is set: repositories and registries are not found",
        evidence=f"{RESOLV_CONF} {what}",
        remedy=NAME_SERVER,
        entities=(place(RESOLV_CONF),),
    )


def _quoted(named: dict[NamedProxy, str]) -> str:
    return listing((f"{one.path}:{one.line} {one.host} (for {whose})" for one, whose in named.items()), between="; ")


def _whose(host: HostFacts, path: str) -> str | None:
    """The engine's label for a drop-in of its unit; None for a file of anything that is not here."""
    manager = backend_of(host)
    if manager and any(fnmatchcase(path, pattern) for pattern in manager.proxy_files):
        return PACKAGES
    if known := next((whose for lead, whose in PLACES.items() if path.startswith(lead)), None):
        return known
    return next((one.label for one in host.runtimes if one.unit and f"/{one.unit}" in path), None)


def _users(host: HostFacts, out: Outbound) -> Iterator[str]:
    """What loads packages and images here, and whose files for a proxy were read."""
    manager = backend_of(host)
    if manager and manager.proxy_files:
        yield PACKAGES
    told = {_whose(host, path) for path in out.indirect}
    yield from (one.label for one in host.runtimes if _loads_images(one, host) and one.label not in told)


def _loads_images(engine: RuntimeFacts, host: HostFacts) -> bool:
    """dockerd loads its own, others do for the kubelet. An engine's own file may name a proxy as well."""
    from gpunode.engines.docker.engine import Docker

    if engine.unit != f"{engine.name}.service" or engine.user or engine.snap or engine.embedded_in:
        return False
    if engine.name != Docker.name and not host.kubernetes.kubelet:
        return False
    return "proxy" not in (host.file(engine.config_path).text or "")
