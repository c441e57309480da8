"""The containerd that Docker's packages ship with CRI switched off: whether a kubelet asks it all the same."""

from __future__ import annotations

from gpunode.model.facts import HostFacts, RuntimeFacts


def is_dockers_own(host: HostFacts, engine: RuntimeFacts) -> bool:
    return engine.name == "containerd" and engine.cri_error is not None and kubelet_has_another(host, engine)


def kubelet_has_another(host: HostFacts, engine: RuntimeFacts) -> bool:
    """Whether no kubelet asks a containerd whose CRI is off: there is none, or its pods are another engine's.

    k3s and rke2 bring a containerd of their own; next to CRI-O, dockershim or cri-dockerd docker's is docker's alone.
    """
    from gpunode.engines.docker import dockershim

    if not host.kubernetes.kubelet or any(one.embedded_in for one in host.runtimes):
        return True
    if dockershim.runs_pods(host):
        return True
    endpoint = host.kubernetes.settings.endpoint if host.kubernetes.settings else None
    if endpoint is not None:
        return _plain(endpoint) != _plain(engine.socket)
    return any(one.name == "crio" and one.active for one in host.runtimes)


def _plain(socket: str) -> str:
    """Of one socket the same text: /var/run is /run."""
    return socket.removeprefix("unix://").replace("/var/run/", "/run/", 1)
