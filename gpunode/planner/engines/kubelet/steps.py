"""The kubelet: free of gates, flags and labels that keep it from starting, and with the gates that GPUs once needed.

Without `--only kubernetes` just what keeps it from its next start is taken out: that node is down, or about to be.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpunode.advice import listing, named, typed
from gpunode.catalog.feature_gates import why_refused
from gpunode.catalog.runtimes import kubernetes_distributions
from gpunode.editing.diff import unified
from gpunode.editing.unread import refuse_unread
from gpunode.engines.kubernetes.kubelet_places import Place, places
from gpunode.errors import ConfigFileError, GpunodeError, UnsupportedHost
from gpunode.model.action import PutFile
from gpunode.model.facts import HostFacts
from gpunode.model.kubernetes import KubeletSettings
from gpunode.model.plan import KUBELET_STEP, ForUndo, Kept, Step
from gpunode.model.spec import PARTS, Spec
from gpunode.model.versions import release
from gpunode.planner.engines.kubelet.daemon import Kubelet, kubelet_of, reread, started
from gpunode.planner.engines.kubelet.needed import DOCKER_ONLY, Text, missing, why_not_docker, with_gates
from gpunode.planner.engines.kubelet.refused import Taken, Version, freed
from gpunode.values import dataclass

Outcome = Step | Kept
CPU_MANAGER, DOCKER = "kubelet.cpu-manager", "kubelet.docker"


@dataclass(frozen=True)
class _Changes:
    texts: tuple[Text, ...] = ()
    taken: tuple[Taken, ...] = ()
    added: tuple[str, ...] = ()  # gates
    why_added: tuple[str, ...] = ()


def kubelet_outcomes(host: HostFacts, spec: Spec) -> list[Outcome]:
    """The step, where there is one; what is unchanged or refused is said where the kubelet was asked for by name."""
    asked = spec.only != PARTS
    kubelet = kubelet_of(host)
    version = release(kubelet.version) if kubelet else None
    if kubelet is None or version is None:
        found = "the version of the kubelet is not known" if host.kubernetes.kubelet else "no kubelet was found"
        return [Kept(KUBELET_STEP, found)] if asked else []
    outcomes: list[Outcome] = []
    try:
        changes = _changes(host, version, asked=asked)
    except (ConfigFileError, UnsupportedHost) as error:
        outcomes.append(_refused(error, asked=asked))
    else:
        if changes.texts:
            outcomes.append(_step(host, _at_rest(kubelet, changes), changes, asked=asked))
        elif left := _in_no_file(host, kubelet, version):
            outcomes.append(_refused(left, asked=asked))
        elif asked:
            outcomes.append(_unchanged(host, kubelet))
    return [*outcomes, *(_notes(host, version) if asked else ())]


def _at_rest(kubelet: Kubelet, changes: _Changes) -> Kubelet:
    """One that ends over and over, of what its files tell it, runs for an instant: the next look would not see it."""
    loops = changes.taken and kubelet.state is not None and kubelet.state.restarts
    return kubelet._replace(runs=False) if loops else kubelet


def _changes(host: HostFacts, version: Version, *, asked: bool) -> _Changes:
    """Raises ConfigFileError for a file that cannot be edited safely, UnsupportedHost where gpunode must not."""
    texts: dict[str, Text] = {}
    taken: list[Taken] = []
    for place in places(host):
        if place.file.unread is not None:
            if asked or not host.kubernetes.running:
                refuse_unread(place.path, place.file.unread)
            continue
        now = place.file.text or ""
        found = freed(place.path, now, place.form, version)
        if found.taken:
            _refuse_packaged(place, found.taken)
            texts[place.path] = Text(place.path, now, found.text)
            taken += found.taken
    needs = missing(host, version) if asked else {}
    if DOCKER_ONLY in needs and why_not_docker(host):
        del needs[DOCKER_ONLY]
    if needs:
        with_them = with_gates(host, tuple(needs), {path: text.after for path, text in texts.items()})
        texts[with_them.path] = with_them
    return _Changes(tuple(texts.values()), tuple(dict.fromkeys(taken)), tuple(needs), tuple(needs.values()))


def _refuse_packaged(place: Place, taken: Sequence[Taken]) -> None:
    if place.is_packaged:
        raise UnsupportedHost(
            f"{place.path} has {listing([one.what for one in taken])}, and belongs to a package",
            evidence="; ".join(f"{one.what} {one.why}" for one in taken),
            remedy="upgrade the package that it is of, or replace the line in a drop-in: systemctl edit kubelet",
        )


def _in_no_file(host: HostFacts, kubelet: Kubelet, version: Version) -> UnsupportedHost | None:
    """What keeps a kubelet down and stands nowhere that gpunode edits: a unit of a package, a cloud's user data."""
    gates = (host.kubernetes.settings or KubeletSettings()).gates
    dead = {name: why for name, gate in sorted(gates.items()) if (why := why_refused(name, version, on=gate.on))}
    if not dead or kubelet.runs:
        return None
    where = listing(sorted({gates[name].where for name in dead}))
    told = next((one.kubelet_args for one in kubernetes_distributions() if one.name == kubelet.name), None)
    shows = f"where the kubelet is started: systemctl cat {named(kubelet.unit)} shows the command"
    return UnsupportedHost(
        f"{kubelet} does not start with {listing(list(dead))}, and no file that gpunode edits has it",
        evidence=f"{'; '.join(f'{name} {why}' for name, why in dead.items())} ({where})",
        remedy=f"take it out of {told}" if told else f"take it out {shows}",
    )


def _unchanged(host: HostFacts, kubelet: Kubelet) -> Kept:
    """One that is down for another reason is not said to be well."""
    if kubelet.runs or kubelet.is_off or host.init != "systemd" or not host.kubernetes.joined:
        return Kept(KUBELET_STEP, f"{kubelet} is told nothing that it does not know")
    log = typed("journalctl", "-b", "-u", kubelet.unit)
    return Kept(
        KUBELET_STEP,
        f"{kubelet} does not run, and not for a gate, a flag or a label that gpunode knows: {log} shows its last words",
        beware=True,
    )


def _refused(error: GpunodeError, *, asked: bool) -> Kept:
    return Kept(
        KUBELET_STEP, error.problem, refused=asked, evidence=error.evidence, remedy=error.remedy, beware=not asked
    )


def _step(host: HostFacts, kubelet: Kubelet, changes: _Changes, *, asked: bool) -> Step:
    files = [PutFile(t.path, t.after, expect_sha256=_sha256(host, t)) for t in changes.texts]
    paths = [text.path for text in changes.texts]
    why_not = _why_not_started(host, kubelet, asked=asked)
    words = tuple(f"{gate}=true" for gate in changes.added)
    actions = () if why_not else started(host, kubelet, paths, words)
    # With its old files back, a kubelet that was down is down again.
    undo = (started(host, kubelet, paths) if kubelet.runs else reread(paths)) if actions else ()
    parts = [f"without {listing(list(dict.fromkeys(one.what for one in changes.taken)))}"] if changes.taken else []
    parts += [f"with {' and '.join(f'{gate}=true' for gate in changes.added)}"] if changes.added else []
    how = f"written only: {why_not}" if why_not else f"restart of {kubelet.unit}, which stops no container"
    return Step(
        KUBELET_STEP,
        f"{' and '.join(paths)}: {', '.join(parts)}; {how}",
        "; ".join(_why(host, kubelet, changes)),
        (*files, *actions),
        undo,
        "\n".join(unified(t.path, t.before, t.after) for t in changes.texts),
        # What it did not start with is not to be started with again by an undo.
        for_undo=ForUndo(restarts="" if changes.taken or not actions else kubelet.unit),
    )


def _sha256(host: HostFacts, text: Text) -> str | None:
    return host.file(text.path).sha256 if text.before is not None else None


def _why_not_started(host: HostFacts, kubelet: Kubelet, *, asked: bool) -> str:
    """Why the kubelet is not started with its new files; "": it is."""
    if host.init == "chroot":
        return "an image is being built"
    if host.init != "systemd":
        return f"nothing here restarts {kubelet.name} but who started it"
    if not host.kubernetes.joined:
        return "it has not joined a cluster"
    if kubelet.is_off:
        return f"{kubelet.unit} is switched off"
    if kubelet.runs and not asked:
        return "the kubelet that runs was started before, and is restarted by gpunode setup --only kubernetes alone"
    return ""


def _why(host: HostFacts, kubelet: Kubelet, changes: _Changes) -> Iterator[str]:
    if changes.taken:
        dead = "; ".join(dict.fromkeys(f"{one.what} {one.why}" for one in changes.taken))
        yield f"{kubelet} does not start with it: {dead}"
    if changes.added:
        offers = " and ".join(changes.why_added)
        one_name = "; a pod asks for one of these names, never for both" if len(changes.added) > 1 else ""
        yield f"{kubelet} offers {offers} with it alone{one_name}"
    if host.kubernetes.distribution == "kubeadm" and any(t.path.endswith("config.yaml") for t in changes.texts):
        yield "kubeadm writes this file anew from the cluster's ConfigMap kubelet-config: edit it there too"


def _notes(host: HostFacts, version: Version) -> Iterator[Kept]:
    needs, against = missing(host, version), why_not_docker(host)
    if DOCKER_ONLY in needs and against:
        yield Kept(
            DOCKER,
            f"{DOCKER_ONLY} is not set: it counts GPUs for containers of docker alone, and {against}",
            beware=True,
        )
    settings = host.kubernetes.settings or KubeletSettings()
    if settings.cpu_manager == "static":
        yield Kept(
            CPU_MANAGER,
            "the CPU manager is static: NVIDIA's device plugin needs passDeviceSpecs: true (PASS_DEVICE_SPECS), or "
            "containers lose their GPUs when the kubelet writes their cgroup",
            beware=True,
        )
