"""gpunode k8s pod: a pod that shows whether a cluster gives out its GPUs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from gpunode.cli.options.groups import FileOptions, HostOptions, QuietOptions, typed, wanted
from gpunode.cli.options.verb import verb

if TYPE_CHECKING:
    import typer

    from gpunode.kubernetes.documents import Object
    from gpunode.kubernetes.pod_rules import PodMode
    from gpunode.kubernetes.pods import PodRequest
    from gpunode.model.facts import HostFacts


def register(k8s: typer.Typer) -> None:
    verb(
        k8s,
        "pod",
        help="Print a pod that adds two vectors on a GPU and ends. Asks no cluster, changes nothing.",
        examples=(
            "gpunode k8s pod | kubectl apply -f -; kubectl logs -f gpunode-vector-add",
            "gpunode k8s pod --mode dra --product 'NVIDIA H100 80GB HBM3'",
        ),
    )(pod)


def pod(
    hosts: HostOptions,
    output: FileOptions,
    gpus: Annotated[str | None, wanted("--gpus", metavar="N", help="Whole GPUs for the pod (default 1).")] = None,
    mode: Annotated[
        str | None,
        wanted(
            "--mode", metavar="device-plugin|dra|alpha", help="Who gives them out (default: as the release has it)."
        ),
    ] = None,
    kubernetes: Annotated[
        str | None, wanted("--kubernetes", metavar="VERSION", help="The cluster's (default: one that is supported).")
    ] = None,
    resource: Annotated[
        str | None, wanted("--resource", metavar="NAME", help="nvidia.com/mig-1g.10gb, ... (default nvidia.com/gpu).")
    ] = None,
    product: Annotated[
        str | None, wanted("--product", metavar="NAME", help="Only on nodes with this GPU, as nvidia-smi names it.")
    ] = None,
    runtime_class: Annotated[
        str | None, wanted("--runtime-class", metavar="NAME", help="Where nvidia is not the engine's default.")
    ] = None,
    visible_devices: Annotated[
        str | None,
        wanted("--visible-devices", metavar="all|none|void|LIST", help="NVIDIA_VISIBLE_DEVICES, and no GPU counted."),
    ] = None,
    image: Annotated[str | None, wanted("--image", metavar="IMAGE", help="A mirror's, of the same program.")] = None,
) -> int:
    from gpunode.catalog.test_images import image_for
    from gpunode.cli.output import deliver_file
    from gpunode.kubernetes import pod_rules as rules
    from gpunode.kubernetes.documents import documents
    from gpunode.kubernetes.dra_pod import dra_objects
    from gpunode.kubernetes.pods import PodRequest
    from gpunode.kubernetes.release import kubernetes_release
    from gpunode.model.kubernetes import GPU

    release = kubernetes_release(kubernetes) if kubernetes is not None else None
    chosen = rules.pod_mode(mode, release)
    _refuse_together(chosen, gpus=gpus, resource=resource, runtime_class=runtime_class, visible_devices=visible_devices)
    count = rules.gpu_count(gpus) if gpus is not None else 1
    if chosen == "alpha" and release is not None:
        rules.alpha_count(count, release)
    request = PodRequest(
        image=rules.image_name(image) if image is not None else "",
        gpus=count,
        resource=rules.gpu_resource(resource) if resource is not None else GPU,
        kubernetes=release,
        runtime_class=rules.class_name(runtime_class, release) if runtime_class is not None else None,
        product=rules.product_name(product, chosen) if product is not None else None,
        visible_devices=rules.visible_devices(visible_devices) if visible_devices is not None else None,
    )
    # An old pod mounts this host's libraries; of any other a host that was named decides on the node, and which CUDA
    # its driver runs.
    host = _host(hosts) if chosen == "alpha" or typed(hosts) else None
    request = replace(request, image=request.image or image_for(_branch(host)).image, hostname=_hostname(host))
    objects = dra_objects(request) if chosen == "dra" else (_one_pod(request, chosen, host),)
    deliver_file(documents(objects, _head(chosen, visible_devices)), output)
    return 0


def _one_pod(request: PodRequest, mode: PodMode, host: HostFacts | None) -> Object:
    from gpunode.kubernetes.driver_libraries import driver_libraries
    from gpunode.kubernetes.pods import vector_add_pod

    return vector_add_pod(replace(request, libraries=driver_libraries(host) if mode == "alpha" and host else None))


def _refuse_together(mode: PodMode, **options: str | None) -> None:
    """Raises UsageError for options of which one would be ignored."""
    from gpunode.errors import UsageError

    words = [f"--{name.replace('_', '-')}" for name, value in options.items() if value is not None]
    if "--visible-devices" in words and (others := [word for word in words if word in ("--gpus", "--resource")]):
        raise UsageError(
            f"--visible-devices and {others[0]} exclude each other",
            evidence="with the first the engine decides which GPUs the container sees, with the other the cluster",
            remedy="leave one of them out",
        )
    unused = {"dra": ("--resource", "--runtime-class", "--visible-devices")}
    unused["alpha"] = unused["dra"]
    if ignored := [word for word in words if word in unused.get(mode, ())]:
        raise UsageError(f"{ignored[0]} is not for --mode {mode}", remedy="leave one of them out")


def _host(hosts: HostOptions) -> HostFacts:
    from gpunode.cli.hosts import look_at, open_hosts
    from gpunode.cli.verbs.detect import observed
    from gpunode.errors import GpunodeError, UsageError
    from gpunode.render.wording import with_name

    with open_hosts(hosts) as named:
        if len(named) != 1:
            raise UsageError("k8s pod takes one host", remedy="name one host with --ssh")
        (outcome,) = look_at(named, hosts, QuietOptions(), observed).hosts
    if outcome.facts is None:
        error = GpunodeError(
            with_name(outcome.target, outcome.problem), evidence=outcome.evidence, remedy=outcome.remedy
        )
        error.code = outcome.code
        raise error
    return outcome.facts


def _branch(host: HostFacts | None) -> int | None:
    from gpunode.model.versions import driver_numbers

    smi = host.driver.smi if host else None
    numbers = driver_numbers((smi and smi.driver_version) or (host and host.driver.loaded) or None)
    return numbers[0] if numbers else None


def _hostname(host: HostFacts | None) -> str | None:
    """By which the pod is bound to its node: one that selects by a guess waits for ever."""
    from gpunode.cli.errors import say
    from gpunode.kubernetes.label_values import is_legal
    from gpunode.kubernetes.pods import HOSTNAME

    if host is None:
        return None
    node = host.kubernetes.node
    label = node.labels.get(HOSTNAME) if node else None
    if label and is_legal(label):
        return label
    say(f"gpunode: the node's label {HOSTNAME} was not read: any node may run this pod, not {host.target} alone")
    return None


def _head(mode: PodMode, visible_devices: str | None) -> str:
    from gpunode.kubernetes.pods import NAME

    again = f"apply leaves one that has ended as it is, with its old log: kubectl delete pod {NAME} first."
    return f"{_of_mode(mode, visible_devices)}\n{again}"


def _of_mode(mode: PodMode, visible_devices: str | None) -> str:
    from gpunode.kubernetes import pod_rules as rules

    if visible_devices is not None:
        return (
            "The engine's nvidia runtime reads NVIDIA_VISIBLE_DEVICES. The cluster does not know of these GPUs: it may "
            "give\nthem to another pod as well. Its value is text: a server refuses a number without quotes."
        )
    if mode == "dra":
        return "It ends with Test PASSED: kubectl logs gpunode-vector-add. Needs NVIDIA's DRA driver in the cluster."
    if mode == "alpha":
        return (
            f"{rules.LIMITS_ALONE}\n{rules.WHOLE}\nFor clusters before 1.11 alone: {rules.WAITS}.\n"
            "The libraries are those of the host that was looked at: every node that may run this pod has them there."
        )
    return f"It ends with Test PASSED: kubectl logs gpunode-vector-add.\n{rules.LIMITS_ALONE}\n{rules.WHOLE}"
