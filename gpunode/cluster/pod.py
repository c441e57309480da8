"""The test pod of `k8s verify --pod` made, waited for, read and deleted through the API: shell/active/pod.sh from here.

It takes the rights that it takes there: to create, get and delete pods and to get pods/log. Who may list pods as well
deletes those that earlier tests left on the node.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

from gpunode.cluster.faults import Answered
from gpunode.cluster.server import NAMESPACE, Server
from gpunode.errors import TransportError
from gpunode.kubernetes.chain import UNSEEN
from gpunode.kubernetes.documents import Object
from gpunode.kubernetes.pods import MANAGED_BY, TEST_PREFIX
from gpunode.model.pod_trial import PodTrial

LOG_LINES, LOG_BYTES = 20, 4096
LOOK_S = 15.0
GONE_S = 40.0  # for a kubelet to end it
MOST_SWEPT = 20
LEFT_AFTER = timedelta(minutes=10)  # a test has two minutes, and its pod another one to go
LONGEST = 400  # characters of what a pod's object says


def run_pod(
    server: Server, name: str, manifest: Object, limit_s: int, pause: Callable[[float], None] = time.sleep
) -> PodTrial:
    """What came of it, whatever that was: a server that fails on the way is a sentence in it, no error."""
    swept = _sweep(server, str(_mapping(manifest.get("spec")).get("nodeName", "")))
    return replace(_tried(server, name, manifest, limit_s, pause), swept=swept)


def _sweep(server: Server, node: str) -> tuple[str, ...]:
    """The names of pods of tests on this node that have ended a while ago, deleted now: who made them was killed."""
    options = {"label_selector": "=".join(MANAGED_BY), "field_selector": f"spec.nodeName={node}", "limit": MOST_SWEPT}
    try:
        found = server.object(
            "list pods of earlier tests",
            lambda api: api.list_namespaced_pod(NAMESPACE, _preload_content=False, **options),
            LOOK_S,
        )
        items = found.get("items")
        names = [name for one in (items if isinstance(items, list) else ())[:MOST_SWEPT] if (name := _left_name(one))]
        for name in names:
            _delete(server, name)
    except TransportError:  # not allowed, or not well: that is no part of this test
        return ()
    return tuple(names)


def _left_name(pod: Any) -> str:
    """Its name; "" for a pod that is not of a test, or may still be read by who made it."""
    meta, phase = _mapping(_mapping(pod).get("metadata")), _mapping(_mapping(pod).get("status")).get("phase")
    name, made = _text(meta.get("name")), _text(meta.get("creationTimestamp"))
    if not name.startswith(TEST_PREFIX) or phase not in ("Succeeded", "Failed"):
        return ""
    try:
        age = datetime.now(timezone.utc) - datetime.strptime(made, "%Y-%m-%dT%H:%M:%S%z")
    except ValueError:
        return ""
    return name if age > LEFT_AFTER else ""


def _tried(server: Server, name: str, manifest: Object, limit_s: int, pause: Callable[[float], None]) -> PodTrial:
    body = _with_texts(manifest)
    try:
        server.text(
            f"create pod {name}", lambda api: api.create_namespaced_pod(NAMESPACE, body, _preload_content=False)
        )
    except TransportError as error:
        answered = (isinstance(error, Answered) and error.says) or ""
        if isinstance(error, Answered) and error.status < 500:
            return PodTrial(name, says=answered or error.problem)
        # It may be made all the same, even after this: a gateway's or etcd's limit is no answer either.
        left = _deleted(server, name, pause) or "its making may still come"
        return PodTrial(name, says=answered or error.problem, left=left)
    except BaseException:
        _deleted(server, name, pause)
        raise
    state: dict[str, str] = {}
    log: tuple[str, ...] = ()
    why = ""
    try:
        state = _ended(server, name, limit_s, pause)
        log = _log(server, name)
    except TransportError as error:
        why = f"{error.problem} ({error.evidence})" if error.evidence else error.problem
    finally:
        left = _deleted(server, name, pause)
    words = [state[key] for key in ("reason", "message", "waiting", "ended") if state.get(key)]
    return PodTrial(name, state.get("phase") or UNSEEN, ", ".join((*words, *([why] if why else ()))), log, left)


def _with_texts(manifest: Object) -> dict[str, Any]:
    """With its quantities as text, as the API has them: the client takes no number for one."""
    spec: Any = manifest["spec"]
    containers = []
    for one in spec["containers"]:
        limits = {name: str(count) for name, count in one["resources"]["limits"].items()}
        containers.append({**one, "resources": {"limits": limits}})
    return {**manifest, "spec": {**spec, "containers": containers}}


def _ended(server: Server, name: str, limit_s: int, pause: Callable[[float], None]) -> dict[str, str]:
    """Its state when it has ended, or when its time is over."""
    over_at = time.monotonic() + limit_s
    while True:
        over = time.monotonic() >= over_at
        try:
            state = _state(_object(server, name).get("status"))
            if over or state.get("phase") in ("Succeeded", "Failed"):
                return state
        except TransportError as error:  # a server may be restarted meanwhile
            if over or (isinstance(error, Answered) and error.status < 500):
                raise
        pause(1)


def _object(server: Server, name: str) -> Mapping[str, Any]:
    return server.object(
        f"get pod {name}", lambda api: api.read_namespaced_pod(name, NAMESPACE, _preload_content=False), LOOK_S
    )


def _state(status: Any) -> dict[str, str]:
    """As POD_FIELDS of the script has them."""
    status = _mapping(status)
    found = {key: _text(status.get(key)) for key in ("phase", "reason", "message")}
    containers = status.get("containerStatuses")
    for one in (containers if isinstance(containers, list) else [])[:1]:
        state = _mapping(_mapping(one).get("state"))
        waiting, ended = _mapping(state.get("waiting")), _mapping(state.get("terminated"))
        if waiting:
            found["waiting"] = ": ".join(filter(None, (_text(waiting.get("reason")), _text(waiting.get("message")))))
        if ended:
            found["ended"] = f"{_text(ended.get('exitCode'))} {_text(ended.get('reason'))}"
    return found


def _log(server: Server, name: str) -> tuple[str, ...]:
    """Nothing where the server has none: a container that never started."""
    try:
        text = server.text(
            f"get the log of pod {name}",
            lambda api: api.read_namespaced_pod_log(
                name, NAMESPACE, tail_lines=LOG_LINES, limit_bytes=LOG_BYTES, _preload_content=False
            ),
            LOOK_S,
        )
    except TransportError:
        return ()
    return tuple(text.splitlines()[-LOG_LINES:])


def _deleted(server: Server, name: str, pause: Callable[[float], None]) -> str:
    """Why it may still be there; "" when it is gone."""
    over_at = time.monotonic() + GONE_S
    try:
        _delete(server, name)
        while time.monotonic() < over_at:
            _object(server, name)
            pause(0.5)
    except Answered as error:
        return "" if error.status == 404 else error.says or error.problem
    except TransportError as error:
        return error.problem
    return f"it had not ended {GONE_S:.0f} s after its deletion"


def _delete(server: Server, name: str) -> None:
    server.text(
        f"delete pod {name}",
        lambda api: api.delete_namespaced_pod(name, NAMESPACE, grace_period_seconds=1, _preload_content=False),
    )


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    return str(value)[:LONGEST] if isinstance(value, (str, int)) else ""
