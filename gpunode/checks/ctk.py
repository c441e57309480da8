"""The NVIDIA Container Toolkit: is it complete, safe and configured correctly?"""

from __future__ import annotations

from gpunode.advice import listing, named, typed
from gpunode.checks import needs, words
from gpunode.checks.registry import Context, check
from gpunode.checks.words import active_lines, setting, typed_for
from gpunode.model.facts import HostFacts
from gpunode.model.files import FileFacts
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.model.spec import TOOLKIT_CONFIG, TOOLKIT_LDCONFIG, TOOLKIT_MODE, TOOLKIT_NO_CGROUPS, TOOLKIT_ROOT
from gpunode.model.versions import is_before, numbers
from gpunode.remedy import Remedy, RepairAction, setup

OF_TOOLKIT = "nvidia.github.io"  # where every repository of the toolkit is, today's and the old ones
MODES = ("auto", "legacy", "cdi", "csv", "jit-cdi")
CLI_INFO = "nvidia-container-cli --load-kmods=false info"
SHOWS = "nvidia-container-cli -d /dev/tty info shows at which step it fails"
SETUP = setup("--only", "toolkit")


def _wanted(host: HostFacts, context: Context) -> bool:
    return context.spec is None or context.spec.toolkit.kind != "none"


@check(
    "ctk.installed",
    Severity.ERROR,
    title="the container toolkit is installed",
    reads="nvidia-ctk --version; nvidia-container-runtime and nvidia-container-runtime-hook in PATH",
    remedy=Remedy(RepairAction.UPGRADE, SETUP),
    needs=(needs.gpu_for_containers, needs.own_toolkit, needs.engine),
)
def installed(host: HostFacts, context: Context) -> CheckOutcome:
    """The container toolkit is missing, so no container can be given a GPU."""
    if not _wanted(host, context):
        return NotApplicable("the spec wants no toolkit")
    toolkit = host.toolkit
    if toolkit.version and not toolkit.lost and toolkit.runtime_executable:
        return None
    if toolkit.version is None:
        summary, evidence = "the NVIDIA Container Toolkit is not installed", "nvidia-ctk --version prints nothing"
    elif toolkit.lost:
        # The hook is in a package of its own: nvidia-ctk and nvidia-container-runtime stay when that is removed.
        summary, evidence = (
            f"{toolkit.lost} is missing",
            f"nvidia-ctk {toolkit.version} is installed, {toolkit.lost} is not in PATH",
        )
    else:
        summary, evidence = "nvidia-container-runtime cannot be run", f"{toolkit.runtime_path} is not executable"
    return Finding(summary, evidence=evidence, remedy=Remedy(RepairAction.UPGRADE, SETUP))


@check(
    "ctk.versions-match",
    Severity.ERROR,
    title="the toolkit's packages are one version",
    reads="the package list against catalog/toolkit.yaml",
    remedy=Remedy(RepairAction.UPGRADE, SETUP),
    needs=(needs.packages, needs.toolkit),
)
def versions_match(host: HostFacts, context: Context) -> CheckOutcome:
    """The toolkit's packages are of different versions."""
    have = {n: host.packages.installed[n] for n in context.catalog.toolkit.packages if n in host.packages.installed}
    have = {n: p for n, p in have.items() if p.configured}
    if not have:
        return NotApplicable("the toolkit does not come from packages")
    if len({numbers(p.version) for p in have.values()}) == 1:
        return None
    return Finding(
        "the toolkit's packages are not one version",
        evidence=listing((f"{n} {p.version}" for n, p in sorted(have.items())), 8),
        remedy=Remedy(RepairAction.UPGRADE, SETUP),
    )


@check(
    "sec.ctk-cve",
    Severity.ERROR,
    title="the toolkit has no known CVE that is fixed in a newer version",
    reads="nvidia-ctk --version against the floor in catalog/toolkit.yaml",
    remedy=Remedy(RepairAction.UPGRADE, SETUP),
    needs=(needs.toolkit,),
)
def cve(host: HostFacts, context: Context) -> CheckOutcome:
    """The toolkit's version has a known CVE, through which a container may gain rights on the host."""
    known, version = context.catalog.toolkit, host.toolkit.version or ""
    if not numbers(version):
        return NotApplicable(f"nvidia-ctk's version {version!r} cannot be compared")
    if not is_before(version, known.floor):
        return None
    held = words.unpinning(host, known.packages)
    return Finding(
        f"toolkit {version} has {known.floor_cve}, fixed in {known.floor}",
        evidence=f"nvidia-ctk --version prints {version}" + (f"; {held.evidence}" if held else ""),
        remedy=Remedy(RepairAction.UPGRADE, *((f"{held.command}; then ",) if held else ()), SETUP),
    )


@check(
    "ctk.config",
    Severity.ERROR,
    title="the toolkit's own config is sane",
    reads=TOOLKIT_CONFIG,
    remedy=Remedy(RepairAction.CONFIGURE, "nvidia-ctk config --in-place --set KEY=VALUE"),
    needs=(needs.toolkit,),
)
def config(host: HostFacts, context: Context) -> CheckOutcome:
    """The toolkit's config.toml gives containers no GPU, or runs their ldconfig as root."""
    file = host.file(TOOLKIT_CONFIG)
    if file.unread is not None:
        return NotApplicable(f"{TOOLKIT_CONFIG} was not read: {file.unread}")
    if file.text is None:
        return NotApplicable(f"{TOOLKIT_CONFIG} is absent: the toolkit runs on its defaults")
    if broken := _broken(file):
        return broken
    # A containerd without CRI serves docker.
    daemons = [e for e in host.runtimes if e.active and e.unit and e.cri_error is None]
    rootless = bool(daemons) and all(engine.user for engine in daemons)
    asked = (
        rootless
        or host.user_namespace is True
        or (context.spec is not None and context.spec.toolkit_config.no_cgroups is True)
    )
    if setting(file, TOOLKIT_NO_CGROUPS) == "true" and not asked:
        summary = "no-cgroups is true: containers of a daemon that runs as root get no GPU"
        return _config_finding(file, summary, TOOLKIT_NO_CGROUPS, "false")
    ldconfig = setting(file, TOOLKIT_LDCONFIG)
    if ldconfig is not None and not ldconfig.startswith("@"):
        summary = "ldconfig is run from inside the container (it has no @)"
        return _config_finding(file, summary, TOOLKIT_LDCONFIG, "@/sbin/ldconfig")
    # A driver container's modules are its own: where the host has one too, the driver is the host's.
    if setting(file, TOOLKIT_ROOT) == "/run/nvidia/driver" and host.driver.installed and not host.driver.container:
        summary = "the driver is looked for in a driver container's root, and there is none: containers get no GPU"
        return _config_finding(file, summary, TOOLKIT_ROOT, "/")
    mode = setting(file, TOOLKIT_MODE)
    if mode == "csv" and host.platform not in ("l4t", "container"):  # a container's machine may be a Jetson
        summary = "mode csv gives containers what the files of a Jetson list, and this is none: they get no GPU"
        return _config_finding(file, summary, TOOLKIT_MODE, "auto")
    if mode is not None and mode not in MODES:
        return _config_finding(file, f"mode {mode!r} is not one of {', '.join(MODES)}", TOOLKIT_MODE, "auto")
    return None


def _broken(file: FileFacts) -> Finding | None:
    from gpunode.editing import toml_text
    from gpunode.errors import ConfigFileError

    try:
        toml_text.load(file.path, file.text or "")
    except ConfigFileError as fault:
        return Finding(
            f"{file.path} cannot be parsed: nvidia-container-runtime stops at it, and no container starts through it",
            evidence=fault.problem,
            remedy=Remedy(RepairAction.CONFIGURE, f"correct {named(file.path)} at that place"),
        )
    return None


def _config_finding(file: FileFacts, summary: str, name: str, better: str) -> Finding:
    from gpunode.engines.toolkit_config import line_of

    return Finding(
        summary,
        evidence=f"{TOOLKIT_CONFIG}:{line_of(file, name)} {name.rpartition('.')[2]} = {setting(file, name)}",
        remedy=Remedy(
            RepairAction.CONFIGURE, f"{typed('nvidia-ctk', 'config', '--in-place', '--set', f'{name}={better}')}"
        ),
    )


@check(
    "ctk.cli-info",
    Severity.ERROR,
    title="libnvidia-container reaches the driver",
    reads=f"{CLI_INFO}, with a limit, where nvidia-smi is asked too",
    remedy=Remedy(RepairAction.SUPPORT, f"mend the driver first; {SHOWS}"),
    needs=(needs.gpu, needs.host_driver, needs.loaded, needs.toolkit, needs.smi_ran),
)
def cli_info(host: HostFacts, context: Context) -> CheckOutcome:
    """libnvidia-container, which puts the driver into containers, does not reach it: they get no GPU, or fail."""
    cli, loaded = host.toolkit.cli, host.driver.loaded
    if cli is None:
        return NotApplicable(
            f"nvidia-container-cli was not asked: {host.unread.get('cli_info', 'a recording of an older gpunode')}"
        )
    if cli.code == 127:
        return NotApplicable("nvidia-container-cli is not installed (libnvidia-container-tools; CDI needs none)")
    if cli.code == 0 and cli.driver_version is None:
        return NotApplicable("nvidia-container-cli names no version of the driver")
    if cli.code == 0 and cli.driver_version == loaded:
        return None
    said = f"NVRM version {cli.driver_version}; /sys/module/nvidia/version holds {loaded}"
    summaries = {0: "libnvidia-container sees another driver", 124: "nvidia-container-cli does not answer in time"}
    return Finding(
        summaries.get(cli.code, "libnvidia-container does not reach the driver"),
        evidence=f"{CLI_INFO}, exit {cli.code}: {(cli.message or 'no message') if cli.code else said}",
        remedy=Remedy(RepairAction.SUPPORT, f"{SHOWS}; mend the driver first, then the toolkit's packages"),
    )


@check(
    "ctk.legacy-packages",
    Severity.WARNING,
    title="no leftovers of the old nvidia-docker",
    reads="the package list against catalog/toolkit.yaml",
    remedy=Remedy(RepairAction.UPGRADE, SETUP),
    needs=(needs.gpu_for_containers, needs.packages),
)
def legacy_packages(host: HostFacts, context: Context) -> CheckOutcome:
    """Packages that the container toolkit has replaced are still installed."""
    old = [n for n in context.catalog.toolkit.replaces if n in host.packages.installed]
    old = [n for n in old if host.packages.installed[n].configured]
    if not old:
        return None
    return Finding(
        f"{listing(old)} is still installed",
        evidence=listing(f"{n} {host.packages.installed[n].version}" for n in old),
        remedy=Remedy(RepairAction.UPGRADE, SETUP, f"; then {typed_for(host, 'purge', *old)}"),
    )


@check(
    "ctk.repo",
    Severity.WARNING,
    title="the toolkit's repository is the current one",
    reads="the repositories of the package manager",
    remedy=Remedy(RepairAction.UPGRADE, SETUP),
    needs=(needs.gpu_for_containers, needs.packages),
)
def repo(host: HostFacts, context: Context) -> CheckOutcome:
    """The toolkit's repository is one that gets no updates any more."""
    from gpunode.catalog.repositories import why_dead

    lines = [(f.path, n, line) for f in host.packages.sources for n, line in active_lines(f.text) if "nvidia" in line]
    if not lines:
        return NotApplicable("no NVIDIA repository is configured")
    old = [(path, n, line, why) for path, n, line in lines if OF_TOOLKIT in line and (why := why_dead(line))]
    if not old:
        return None
    path, number, line, why = old[0]
    return Finding(
        why,
        evidence=f"{path}:{number} {line}",
        remedy=Remedy(RepairAction.UPGRADE, f"{typed('rm', path)}; ", SETUP, " adds libnvidia-container"),
    )
