"""What the toolkit's settings let containers have: GPUs that they were not given, or an old toolkit's CVEs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gpunode.advice import listing, typed
from gpunode.checks import needs
from gpunode.checks.registry import Context, check
from gpunode.checks.words import setting
from gpunode.model.entities import place
from gpunode.model.facts import HostFacts
from gpunode.model.files import FileFacts
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Passed, Severity
from gpunode.model.spec import TOOLKIT_CONFIG, TOOLKIT_LDCONFIG, TOOLKIT_MODE
from gpunode.model.versions import is_before, numbers
from gpunode.remedy import Remedy, RepairAction, setup

# What stands for each kind of workaround in the toolkit's file.
SET_BY = {
    "cdi": 'mode = "cdi"',
    "ldconfig": "the host's ldconfig",
    "compat-hook": "disable-cuda-compat-lib-hook = true",
}
BY_VARIABLE = "accept-nvidia-visible-devices-envvar-when-unprivileged"
BY_MOUNT = "accept-nvidia-visible-devices-as-volume-mounts"
DEFAULTS = {BY_VARIABLE: True, BY_MOUNT: False}
# What the device plugin may be told, and what the toolkit must accept for it; the CDI ones ask it for nothing.
STRATEGIES = {"envvar": BY_VARIABLE, "volume-mounts": BY_MOUNT}
SET = "nvidia-ctk config --in-place --set KEY=true, or another DEVICE_LIST_STRATEGY of the device plugin"


@check(
    "sec.ctk-mitigation",
    Severity.WARNING,
    title="which CVEs of an old toolkit its settings keep away",
    reads=f"nvidia-ctk --version against catalog/toolkit_cves.yaml; {TOOLKIT_CONFIG}",
    remedy=Remedy(RepairAction.UPGRADE, setup("--only", "toolkit")),
    needs=(needs.toolkit,),
)
def ctk_mitigation(host: HostFacts, context: Context) -> CheckOutcome | Passed:
    """Informative: what of an old toolkit's CVEs a workaround of NVIDIA's covers. The finding is sec.ctk-cve's."""
    from gpunode.catalog.toolkit_cves import toolkit_cves

    version, file = host.toolkit.version or "", host.file(TOOLKIT_CONFIG)
    if not numbers(version):
        return NotApplicable(f"nvidia-ctk's version {version!r} cannot be compared")
    old = [row for row in toolkit_cves() if is_before(version, row.fixed)]
    if not old:
        return None
    if file.unread is not None:
        return NotApplicable(f"{TOOLKIT_CONFIG} was not read: {file.unread}")
    mode = setting(file, TOOLKIT_MODE)
    open_ = [row for row in old if not row.cdi_before or mode == "cdi" or not is_before(version, row.cdi_before)]
    here = set(_workarounds(file))
    covered = {kind: [row.cve for row in open_ if row.workaround == kind] for kind in SET_BY if kind in here}
    said = [f"{SET_BY[kind]} keeps {listing(cves, 8)} away" for kind, cves in covered.items() if cves]
    if not said:
        return NotApplicable(f"no workaround of toolkit {version} is set: sec.ctk-cve has what mends it")
    left = [row.cve for row in open_ if row.workaround not in here]
    says = f"not covered: {listing(left, 8)}, until it is upgraded (sec.ctk-cve)" if left else "nothing is left open"
    return Passed(f"toolkit {version}: {'; '.join(said)}; {says}")


def _workarounds(file: FileFacts) -> Iterator[str]:
    if setting(file, TOOLKIT_MODE) == "cdi":
        yield "cdi"
    elif setting(file, "features.disable-cuda-compat-lib-hook") == "true":
        yield "compat-hook"
    ldconfig = setting(file, TOOLKIT_LDCONFIG)
    if ldconfig is None or ldconfig.startswith("@"):
        yield "ldconfig"


@check(
    "sec.visible-devices-policy",
    Severity.WARNING,
    title="the toolkit accepts GPUs in the way in which the device plugin gives them",
    reads=f"{TOOLKIT_CONFIG}; DEVICE_LIST_STRATEGY of the device plugin",
    remedy=Remedy(RepairAction.CONFIGURE, SET),
    needs=(needs.gpu_for_containers, needs.own_toolkit, needs.toolkit),
)
def visible_devices_policy(host: HostFacts, context: Context) -> CheckOutcome | Passed:
    """The device plugin gives GPUs in a way that the toolkit does not accept: pods that asked for one get none."""
    file = host.file(TOOLKIT_CONFIG)
    if file.unread is not None:
        return NotApplicable(f"{TOOLKIT_CONFIG} was not read: {file.unread}")
    words = {key: word for key in DEFAULTS if (word := setting(file, key)) is not None}
    if odd := next((key for key, word in words.items() if word not in ("true", "false")), None):
        return NotApplicable(f"{TOOLKIT_CONFIG}: {odd} is neither true nor false")
    accepts = DEFAULTS | {key: word == "true" for key, word in words.items()}
    strategies = _strategies(host)
    if strategies and not any(accepts.get(STRATEGIES.get(name, ""), True) for name in strategies):
        return _contradicts(strategies, words)
    anybody = (
        "any container may ask for all GPUs by NVIDIA_VISIBLE_DEVICES"
        if accepts[BY_VARIABLE]
        else "only privileged containers may ask for GPUs by NVIDIA_VISIBLE_DEVICES"
    )
    return Passed(f"{_quoted(BY_VARIABLE, words)}: {anybody}; {_quoted(BY_MOUNT, words)}")


def _strategies(host: HostFacts) -> list[str]:
    """How the device plugin gives GPUs to containers; [] where that is not known. A file of its own is not read."""
    plugins = host.kubernetes.device_plugins
    options = plugins.options if plugins else None
    if options is None or ("CONFIG_FILE" in options and "DEVICE_LIST_STRATEGY" not in options):
        return []
    return [name.strip() for name in (options.get("DEVICE_LIST_STRATEGY") or "envvar").split(",")]


def _contradicts(strategies: list[str], words: Mapping[str, str]) -> Finding:
    key = STRATEGIES[strategies[0]]
    how = "as volume mounts" if key == BY_MOUNT else "by a variable, which it accepts of privileged containers only"
    return Finding(
        f"the device plugin gives GPUs {how}, and the toolkit does not accept that",
        evidence=f"DEVICE_LIST_STRATEGY is {','.join(strategies)}; {TOOLKIT_CONFIG}: {_quoted(key, words)}",
        remedy=Remedy(
            RepairAction.CONFIGURE,
            f"{typed('nvidia-ctk', 'config', '--in-place', '--set', f'{key}=true')}; or give the device plugin another "
            "DEVICE_LIST_STRATEGY",
        ),
        entities=(place(TOOLKIT_CONFIG),),
    )


def _quoted(key: str, words: Mapping[str, str]) -> str:
    return f"{key} = {words[key]}" if key in words else f"{key} is {str(DEFAULTS[key]).lower()} by default"
