"""A DaemonSet that has each of its nodes run gpunode in the node's own namespaces.

A node gets a pod when somebody labels it (SELECTED), so that the first roll-out has an order too; what changes later,
the DaemonSet rolls out by itself, one node at a time: a pod is ready when its node is set up.
"""

from __future__ import annotations

import hashlib

from gpunode.export.files import ExportedFile, Request, text_file
from gpunode.export.scripts import NO_CHOICES, host_script, pod_script
from gpunode.kubernetes.documents import Object, documents
from gpunode.kubernetes.readiness import TAINT
from gpunode.values import dataclass

NAME = "gpunode-setup"
STATE = "/var/lib/gpunode/daemonset"
UNIT = "gpunode-daemonset"
HERE = "/gpunode"
READY = "/ready/done"
SELECTED = ("gpunode-setup", "true")
MADE = "Made by `gpunode export daemonset`."
HEAD = f"""{MADE}
Apply it with `kubectl apply --server-side -f`: the annotation that `kubectl apply` keeps has no room for gpunode.
A node takes part from `kubectl label node NODE {"=".join(SELECTED)}` on."""
# A ConfigMap's values may have 1 MiB together (validation of the API: MaxSecretSize).
PART_BYTES = 900 << 10
TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount"
LABELS = {"app.kubernetes.io/name": NAME, "app.kubernetes.io/managed-by": "gpunode"}
# kubectl ends with 1 where the taint is not there; whether it is there is asked then.
UNTAINT = f"""trap 'exit 0' TERM INT
while :; do
  if [ -e {READY} ] && taints=$(kubectl get node "$NODE" -o 'jsonpath={{.spec.taints[*].key}}'); then
    case " $taints " in *" {TAINT} "*) kubectl taint node "$NODE" {TAINT}- ;; esac
  fi
  sleep 10 & wait $!
done
"""


@dataclass(frozen=True)
class Images:
    """What the containers run: `setup` has sh and nsenter, `kubectl` sh and kubectl; None leaves the taint alone."""

    setup: str
    kubectl: str | None = None


def daemonset(request: Request, images: Images, namespace: str) -> tuple[ExportedFile, ...]:
    """`daemonset.yaml`: everything that the cluster needs, gpunode itself where nothing says where nodes get it."""
    objects = daemonset_objects(request, images, namespace)
    return (text_file("daemonset.yaml", documents(objects, HEAD)),)


def daemonset_objects(request: Request, images: Images, namespace: str) -> tuple[Object, ...]:
    """The same as objects, in the order in which they are to be made."""
    maps = (_scripts(request, namespace), *_parts(request, namespace))
    names = tuple(str(_metadata(one)["name"]) for one in maps)
    rights = _rights(namespace) if images.kubectl else ()
    return (_namespace(namespace), *rights, *maps, _workload(request, images, namespace, names))


def _metadata(one: Object) -> dict[str, object]:
    metadata = one["metadata"]
    assert isinstance(metadata, dict)
    return metadata


def _namespace(name: str) -> Object:
    # The pods are privileged: where pod security is enforced, this namespace has to say so.
    labels = {**LABELS, "pod-security.kubernetes.io/enforce": "privileged"}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def _scripts(request: Request, namespace: str) -> Object:
    data = {
        "spec.yaml": request.spec or NO_CHOICES,
        "host.sh": host_script(request, STATE, "host", head=MADE, unit=UNIT),
        "pod.sh": pod_script(MADE, here=HERE, ready=READY),
    }
    mark = hashlib.sha256("".join(data.values()).encode()).hexdigest()[:16]
    return _config_map(f"{NAME}-{mark}", namespace, data=data)


def _parts(request: Request, namespace: str) -> tuple[Object, ...]:
    if not request.carried.is_inside:
        return ()
    import base64

    whole, mark = request.carried.zipapp, request.carried.sha256[:16]
    pieces = [whole[at : at + PART_BYTES] for at in range(0, len(whole), PART_BYTES)]
    return tuple(
        _config_map(
            f"{NAME}-{mark}-{number}", namespace, binaryData={f"part-{number:02d}": base64.b64encode(one).decode()}
        )
        for number, one in enumerate(pieces)
    )


def _config_map(name: str, namespace: str, **content: object) -> Object:
    """Immutable, with a name of its content: another content is another template of the pods, and is rolled out."""
    metadata = {"name": name, "namespace": namespace, "labels": dict(LABELS)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "immutable": True, **content}


def _rights(namespace: str) -> tuple[Object, ...]:
    """To take a taint off is to patch a node, and RBAC knows no smaller right than that for all nodes."""
    subject = {"kind": "ServiceAccount", "name": NAME, "namespace": namespace}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": NAME}
    rules = [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "patch"]}]
    api, labels = "rbac.authorization.k8s.io/v1", dict(LABELS)
    return (
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": NAME, "namespace": namespace, "labels": labels},
            "automountServiceAccountToken": False,
        },
        {"apiVersion": api, "kind": "ClusterRole", "metadata": {"name": NAME, "labels": labels}, "rules": rules},
        {
            "apiVersion": api,
            "kind": "ClusterRoleBinding",
            "metadata": {"name": NAME, "labels": labels},
            "roleRef": role,
            "subjects": [subject],
        },
    )


def _workload(request: Request, images: Images, namespace: str, maps: tuple[str, ...]) -> Object:
    selector = {"app.kubernetes.io/name": NAME}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": NAME, "namespace": namespace, "labels": dict(LABELS)},
        "spec": {
            "selector": {"matchLabels": selector},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}},
            "template": {
                "metadata": {"labels": dict(LABELS), "annotations": {"gpunode/version": request.version}},
                "spec": _pod(images, maps),
            },
        },
    }


def _pod(images: Images, maps: tuple[str, ...]) -> Object:
    """hostNetwork: a node whose pod network is not up yet is set up all the same."""
    sources = [{"configMap": {"name": name}} for name in maps]
    volumes: list[Object] = [
        {"name": "gpunode", "projected": {"sources": sources}},
        {"name": "ready", "emptyDir": {}},
    ]
    containers = [_setup(images.setup)]
    pod: dict[str, object] = {
        "nodeSelector": {"kubernetes.io/os": "linux", **dict([SELECTED])},
        "tolerations": [{"operator": "Exists"}],
        "priorityClassName": "system-node-critical",
        "hostPID": True,
        "hostNetwork": True,
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 10,
    }
    if images.kubectl:
        pod["serviceAccountName"] = NAME
        containers.append(_untaint(images.kubectl))
        volumes.append(_token())
    return {**pod, "containers": containers, "volumes": volumes}


def _setup(image: str) -> Object:
    return {
        "name": "setup",
        "image": image,
        "command": ["sh", f"{HERE}/pod.sh"],
        "securityContext": {"privileged": True, "runAsUser": 0},
        # gpunode runs in a unit of the node's and not in this container: these are for sh and nsenter.
        "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}, "limits": {"memory": "128Mi"}},
        "readinessProbe": {"exec": {"command": ["test", "-e", READY]}, "periodSeconds": 5},
        "volumeMounts": [
            {"name": "gpunode", "mountPath": HERE, "readOnly": True},
            {"name": "ready", "mountPath": "/ready"},
        ],
    }


def _untaint(image: str) -> Object:
    return {
        "name": "untaint",
        "image": image,
        "command": ["sh", "-c", UNTAINT],
        "env": [
            {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
            {"name": "HOME", "value": "/tmp"},
        ],
        "securityContext": {
            "runAsUser": 65534,
            "runAsNonRoot": True,
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        },
        "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}, "limits": {"memory": "128Mi"}},
        "volumeMounts": [
            {"name": "ready", "mountPath": "/ready", "readOnly": True},
            {"name": "token", "mountPath": TOKEN, "readOnly": True},
        ],
    }


def _token() -> Object:
    """As the kubelet mounts it for every container of other pods; here for the one that asks the API server."""
    namespace = {"items": [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}]}
    sources = [
        {"serviceAccountToken": {"path": "token", "expirationSeconds": 3600}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": namespace},
    ]
    # Not root's: the container runs as nobody.
    return {"name": "token", "projected": {"sources": sources, "defaultMode": 0o444}}
