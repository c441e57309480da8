"""Gates, flags and labels that the kubelet is told, and that a later one does not take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpunode.advice import listing, named
from gpunode.catalog.feature_gates import first_refusal, needed_by
from gpunode.catalog.kubelet_flags import gone_flag
from gpunode.catalog.node_labels import kubelet_may_set
from gpunode.catalog.versions import threshold
from gpunode.checks.upgrade.values import Effect, Upgrade
from gpunode.model.kubernetes import Told
from gpunode.model.versions import Release, written
from gpunode.remedy import Remedy, RepairAction, setup

KUBEADM_FLAGS = "/var/lib/kubelet/kubeadm-flags.env"
LABELS = "node-labels"


def dead_gates(upgrade: Upgrade) -> Iterator[Effect]:
    """Feature gates that a release up to the new one does not know, or does not let be switched off."""
    for name, places in _by_name(upgrade.told.gates).items():
        fatal = [(one, why) for one in places if (why := first_refusal(name, upgrade.to, on=one.on))]
        if not fatal:
            continue
        first = min(why for _, why in fatal)
        if first.early and upgrade.now:  # today's release knows it as little
            first = first._replace(since=min(first.since, upgrade.now))
        yield Effect(
            "stops",
            "feature-gate",
            f"{upgrade.later} does not start with the feature gate {name}",
            f"{_where([one for one, _ in fatal], gate=True)}; {name} {first.why}{upgrade.already(first.since)}",
            first.since,
            _taken_out(upgrade, name, [one for one, _ in fatal], first.since),
            first.source,
        )


def gone_flags(upgrade: Upgrade) -> Iterator[Effect]:
    """Flags that the new kubelet does not know."""
    for name, places in _by_name(upgrade.told.flags).items():
        gone = gone_flag(name)
        if gone is None or not upgrade.has(gone.since):
            continue
        remedy = _taken_out(upgrade, f"--{name}", places, gone.since)
        if gone.kubeadm and upgrade.host.kubernetes.distribution == "kubeadm":
            remedy = _by_kubeadm(remedy, places, gone.kubeadm)
        yield Effect(
            "stops",
            "flag",
            f"{upgrade.later} does not start with --{name}",
            f"{_where(places)} has --{name}, which {gone.why}{upgrade.already(gone.since)}",
            gone.since,
            remedy,
            gone.source,
        )


def fatal_labels(upgrade: Upgrade) -> Iterator[Effect]:
    """Labels below kubernetes.io that a kubelet may not set on its own node."""
    row = threshold("kubelet", "refuses-node-labels")
    settings, flags = upgrade.host.kubernetes.settings, upgrade.told.flag(LABELS)
    keys = [pair.partition("=")[0] for one in flags for pair in one.value.split(",") if pair]
    labels = dict.fromkeys((*keys, *(settings.node_labels if settings else ())))
    refused = [label for label in labels if not kubelet_may_set(label, upgrade.to)]
    if not refused:
        return
    where = listing(dict.fromkeys(one.where for one in flags)) or f"--{LABELS}"
    since = row.release
    out = _taken_out(upgrade, listing(refused), flags, since)
    yield Effect(
        "stops",
        "node-label",
        f"{upgrade.later} does not start with the label {refused[0]}",
        f"{where} has {listing(refused)}: below kubernetes.io it may set its own labels alone{upgrade.already(since)}",
        since,
        Remedy(out.action, *out.parts, "; select nodes by nvidia.com/gpu.product, which GPU Feature Discovery sets"),
        row.source,
    )


def _by_name(told: Sequence[Told]) -> dict[str, list[Told]]:
    found: dict[str, list[Told]] = {}
    for one in told:
        found.setdefault(one.name, []).append(one)
    return dict(sorted(found.items()))


def _where(places: Sequence[Told], *, gate: bool = False) -> str:
    """ "/etc/default/kubelet:2 has DevicePlugins=true"."""
    texts = (f"{one.where} has {one.name}={str(one.on).lower()}" if gate else one.where for one in places)
    return listing(dict.fromkeys(texts))


def _taken_out(upgrade: Upgrade, what: str, places: Sequence[Told], since: Release) -> Remedy:
    """By hand before the upgrade, or by setup once the kubelet is that release, where it edits all of these places."""
    if packaged := [one for one in places if one.packaged]:
        text = f"upgrade the package of {named(packaged[0].path)}, or replace its line: systemctl edit kubelet"
        return Remedy(RepairAction.CONFIGURE, text)
    when = "before the upgrade"
    if upgrade.now and (why := needed_by(upgrade.now).get(what)):
        when = f"with the upgrade, and not before: {upgrade.name} {upgrade.version} needs it for {why}"
    if not places or not all(one.path for one in places):
        where = listing(dict.fromkeys(named(one.path) if one.path else one.where for one in places))
        return Remedy(RepairAction.CONFIGURE, f"take {what} out of {where} {when}")
    files, by_setup = listing(dict.fromkeys(named(one.path) for one in places)), setup("--only", "kubernetes")
    if upgrade.now and upgrade.now >= since:
        return Remedy(RepairAction.CONFIGURE, by_setup, f" takes {what} out of {files}")
    once = f" does that once {upgrade.name} is {written(since)} or later"
    return Remedy(RepairAction.CONFIGURE, f"take {what} out of {files} {when}; ", by_setup, once)


def _by_kubeadm(remedy: Remedy, places: Sequence[Told], source: str) -> Remedy:
    """kubeadm's own upgrade takes it out of kubeadm's file, and of no other."""
    if not any(one.path == KUBEADM_FLAGS for one in places):
        return remedy
    file = KUBEADM_FLAGS.rpartition("/")[2]
    lead = f"kubeadm upgrade node, before the kubelet is upgraded, takes it out of {file} ({source}); otherwise "
    return Remedy(remedy.action, lead, *remedy.parts)
