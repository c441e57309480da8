"""In which form the plugin is printed, and what is to be known of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from gpunode.advice import meant
from gpunode.errors import UsageError
from gpunode.kubernetes.api_versions import NEWEST, PLUGIN_V1BETA1
from gpunode.kubernetes.documents import documents
from gpunode.kubernetes.operator_values import OPERATOR, operator_values
from gpunode.kubernetes.plugin_configmap import config_map, refuse_lost
from gpunode.kubernetes.plugin_groups import LABEL
from gpunode.kubernetes.plugin_helm import REPOSITORY, helm_values
from gpunode.kubernetes.plugin_manifest import plugin_objects
from gpunode.kubernetes.plugin_model import Plugin
from gpunode.kubernetes.plugin_mps import CAPABLE, follows_label
from gpunode.kubernetes.plugin_mps import NAME as MPS_DAEMON
from gpunode.kubernetes.plugin_pods import NAMESPACE, Cluster
from gpunode.kubernetes.plugin_rules import notes
from gpunode.kubernetes.plugin_spelling import SPELLINGS, config_text, default_spelling
from gpunode.kubernetes.plugin_unit import plugin_unit
from gpunode.kubernetes.release import kubernetes_release
from gpunode.model.versions import written
from gpunode.regex import regex

_PART = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_NAME = regex(rf"(?=.{{1,253}}$){_PART}(?:\.{_PART})*")
SPELLED = ("manifest", "unit")  # forms that a spelling makes different
IN_A_POD = ("manifest", "helm")  # the plugin's pod is as they say; the operator gives its own a RuntimeClass


def check_form(form: str, spelling: str | None) -> None:
    """Raises UsageError."""
    _one_of("--form", form, tuple(FORMS))
    if spelling is not None:
        _one_of("--spelling", spelling, SPELLINGS)
        if form not in SPELLED:
            raise UsageError(f"--spelling is for {' and '.join(SPELLED)}", remedy="leave it out")


def cluster_of(kubernetes: str | None, runtime_class: str | None) -> Cluster:
    """Raises UsageError."""
    release = kubernetes_release(kubernetes) if kubernetes is not None else NEWEST
    if release < PLUGIN_V1BETA1:
        raise UsageError(
            f"no release of the plugin that gpunode knows speaks to a kubelet of {written(release)}",
            evidence="the kubelet has the device plugin API v1beta1 from 1.10 on, and they speak no other",
            remedy="NVIDIA's images nvidia/k8s-device-plugin:1.8 and :1.9 are of that time",
        )
    if runtime_class is not None and not _NAME.fullmatch(runtime_class):
        raise UsageError(
            f"--runtime-class {runtime_class!r:.80} is no name of an object", remedy="nvidia is the usual one"
        )
    return Cluster(release, runtime_class)


def printed(plugin: Plugin, form: str, spelling: str | None, cluster: Cluster) -> str:
    """Raises UsageError for what the form cannot say."""
    return FORMS[form](plugin, spelling or default_spelling(plugin), cluster)


def form_notes(plugin: Plugin, form: str) -> Iterator[str]:
    yield from notes(plugin)
    if plugin.grouped:
        names = ", ".join(plugin.groups)
        yield f"a node's label {LABEL} chooses among {names}; one without it has {next(iter(plugin.groups))}"
    if form == "manifest" and plugin.any("mps"):
        yield f"MPS' daemon runs on nodes with the label {CAPABLE}=true, which gpu-feature-discovery gives, or a person"
        if plugin.grouped and not follows_label(plugin):
            yield (
                f"before v0.20.0 MPS' daemon follows {LABEL} when it starts alone: after a change of the label, "
                f"kubectl -n {NAMESPACE} delete pod -l name={MPS_DAEMON} --field-selector spec.nodeName=NODE"
            )
    if form == "manifest" and any(one.gfd and one.flag in plugin.settings.values for one in plugin.options):
        yield "what is for gpu-feature-discovery has no effect here: this manifest starts the plugin alone"


def _manifest(plugin: Plugin, spelling: str, cluster: Cluster) -> str:
    return documents(plugin_objects(plugin, spelling, cluster), f"NVIDIA device plugin {plugin.release.tag}")


def _helm(plugin: Plugin, spelling: str, cluster: Cluster) -> str:
    version = plugin.release.tag.removeprefix("v")
    head = (
        f"Values of NVIDIA's chart nvidia-device-plugin {version}, from {REPOSITORY}:\n"
        f"helm upgrade --install nvidia-device-plugin nvidia-device-plugin --repo {REPOSITORY} --version {version} "
        f"--namespace nvidia-device-plugin --create-namespace --values THIS-FILE"
    )
    return documents([helm_values(plugin, cluster.runtime_class)], head)


def _config_map(plugin: Plugin, spelling: str, cluster: Cluster) -> str:
    refuse_lost(plugin, "configmap")
    return documents([config_map(plugin, NAMESPACE)], f"For NVIDIA's device plugin {plugin.release.tag}")


def _config(plugin: Plugin, spelling: str, cluster: Cluster) -> str:
    refuse_lost(plugin, "config")
    if plugin.grouped:
        raise UsageError("--form config is one file, and there are several", remedy="take --form configmap")
    return config_text(plugin, plugin.settings)


def _unit(plugin: Plugin, spelling: str, cluster: Cluster) -> str:
    return plugin_unit(plugin, spelling)


def _operator(plugin: Plugin, spelling: str, cluster: Cluster) -> str:
    head = (
        f"Values of NVIDIA's GPU Operator {OPERATOR} for nodes that gpunode prepared: driver, toolkit and MIG layout\n"
        "are the node's own."
    )
    return documents([operator_values(plugin, cluster.runtime_class)], head)


Form = Callable[[Plugin, str, Cluster], str]
FORMS: dict[str, Form] = {
    "manifest": _manifest,
    "helm": _helm,
    "configmap": _config_map,
    "config": _config,
    "unit": _unit,
    "gpu-operator": _operator,
}


def _one_of(flag: str, text: str, choices: tuple[str, ...]) -> None:
    if text not in choices:
        raise UsageError(
            f"{flag} {text!r:.60} is not a choice",
            evidence=f"{meant(text[:60], choices)}the choices are {', '.join(choices)}",
            remedy=f"choose one of them with {flag}",
        )
