"""The test pod of `k8s verify --pod` made, waited for, read and deleted through the API: shell/active/pod.sh from here.

It takes the rights that it takes there: to create, get and delete pods and to get pods/log. Who may list pods as well
deletes those that earlier tests left on the node.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import Any

from gpunode.cluster.earlier_pods import LOOK_S, delete_pod, sweep
from gpunode.cluster.faults import Answered
from gpunode.cluster.server import NAMESPACE, Server
from gpunode.cluster.values import mapping, sequence, text
from gpunode.errors import TransportError
from gpunode.kubernetes.chain import UNSEEN
from gpunode.kubernetes.documents import Object
from gpunode.model.pod_trial import PodTrial
from gpunode.values import dataclass

LOG_LINES, LOG_BYTES = 20, 4096
GONE_S = 40.0  # for a kubelet to end it
HURRIED_S = 5.0  # the same, after Ctrl-C


@dataclass(frozen=True)
class Trials:
    """All pods of one run."""

    stop: threading.Event = field(default_factory=threading.Event)  # by Ctrl-C: each is deleted, and none is made
    there: set[str] = field(default_factory=set)  # what may be there: asked for, and not seen to be gone


def run_pod(
    server: Server,
    name: str,
    manifest: Object,
    limit_s: int,
    trials: Trials | None = None,
    pause: Callable[[float], None] = time.sleep,
) -> PodTrial:
    """What came of it, whatever that was: a server that fails on the way is a sentence in it, no error."""
    trials = trials or Trials()
    if trials.stop.is_set():
        return PodTrial(name, says="gpunode was stopped before that")
    swept = sweep(server, str(mapping(manifest.get("spec")).get("nodeName", "")))
    return replace(_Pod(server, name, trials, pause).tried(manifest, limit_s), swept=swept)


@dataclass(frozen=True)
class _Pod:
    server: Server
    name: str
    trials: Trials
    pause: Callable[[float], None]

    def tried(self, manifest: Object, limit_s: int) -> PodTrial:
        body, name = _with_texts(manifest), self.name
        self.trials.there.add(name)
        try:
            self.server.text(
                f"create pod {name}", lambda api: api.create_namespaced_pod(NAMESPACE, body, _preload_content=False)
            )
        except TransportError as error:
            answered = (isinstance(error, Answered) and error.says) or ""
            if isinstance(error, Answered) and error.status < 500:
                self.trials.there.discard(name)
                return PodTrial(name, says=answered or error.problem)
            # It may be made all the same, even after this: a gateway's or etcd's limit is no answer either.
            left = self.deleted(unseen="its making may still come")
            return PodTrial(name, says=answered or error.problem, left=left)
        except BaseException:
            self.deleted()
            raise
        state: dict[str, str] = {}
        log: tuple[str, ...] = ()
        why = ""
        try:
            state = self.ended(limit_s)
            log = () if self.trials.stop.is_set() else _log(self.server, name)
        except TransportError as error:
            why = f"{error.problem} ({error.evidence})" if error.evidence else error.problem
        finally:
            left = self.deleted()
        words = [state[key] for key in ("reason", "message", "waiting", "ended") if state.get(key)]
        return PodTrial(name, state.get("phase") or UNSEEN, ", ".join((*words, *([why] if why else ()))), log, left)

    def ended(self, limit_s: int) -> dict[str, str]:
        """Its state when it has ended, or when its time is over."""
        over_at = time.monotonic() + limit_s
        while True:
            over = time.monotonic() >= over_at or self.trials.stop.is_set()
            try:
                state = _state(self.object().get("status"))
                if over or state.get("phase") in ("Succeeded", "Failed"):
                    return state
            except TransportError as error:  # a server may be restarted meanwhile
                if over or (isinstance(error, Answered) and error.status < 500):
                    raise
            self.pause(1)

    def deleted(self, unseen: str = "") -> str:
        """Why it may still be there; "" when it is gone. `unseen`: that, where the server has never heard of it."""
        left = self._why_left(unseen)
        if not left:
            self.trials.there.discard(self.name)
        return left

    def _why_left(self, unseen: str) -> str:
        began = time.monotonic()
        try:
            delete_pod(self.server, self.name)
        except TransportError as error:
            return unseen if _is_gone(error) else _said(error)
        try:
            while time.monotonic() - began < (HURRIED_S if self.trials.stop.is_set() else GONE_S):
                self.object()
                self.pause(0.5)
        except TransportError as error:
            return "" if _is_gone(error) else _said(error)
        return f"it had not ended {time.monotonic() - began:.0f} s after its deletion"

    def object(self) -> Mapping[str, Any]:
        return self.server.object(
            f"get pod {self.name}",
            lambda api: api.read_namespaced_pod(self.name, NAMESPACE, _preload_content=False),
            LOOK_S,
        )


def _is_gone(error: TransportError) -> bool:
    return isinstance(error, Answered) and error.status == 404


def _said(error: TransportError) -> str:
    return (isinstance(error, Answered) and error.says) or error.problem


def _with_texts(manifest: Object) -> dict[str, Any]:
    """With its quantities as text, as the API has them: the client takes no number for one."""
    spec: Any = manifest["spec"]
    containers = []
    for one in spec["containers"]:
        limits = {name: str(count) for name, count in one["resources"]["limits"].items()}
        containers.append({**one, "resources": {"limits": limits}})
    return {**manifest, "spec": {**spec, "containers": containers}}


def _state(status: Any) -> dict[str, str]:
    """As POD_FIELDS of the script has them."""
    status = mapping(status)
    found = {key: text(status.get(key)) for key in ("phase", "reason", "message")}
    for one in sequence(status.get("containerStatuses"), 1):
        state = mapping(mapping(one).get("state"))
        waiting, ended = mapping(state.get("waiting")), mapping(state.get("terminated"))
        if waiting:
            found["waiting"] = ": ".join(filter(None, (text(waiting.get("reason")), text(waiting.get("message")))))
        if ended:
            found["ended"] = f"{text(ended.get('exitCode'))} {text(ended.get('reason'))}"
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
