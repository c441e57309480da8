"""The nvidia handler of CRI-O, Kubernetes distributions and podman, and containerd's files at its next start."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.checks import run_all
from gpunode.model.facts import HostFacts, KernelFacts, OsFacts, RuntimeFacts
from gpunode.model.files import FileFacts
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.model.spec import TOOLKIT_CONFIG, RuntimeSpec, Spec
from tests.checks import hosts as h

MAIN, DROP_IN = "/etc/containerd/config.toml", "/etc/containerd/conf.d/99-nvidia.toml"
BY_CLASS = Spec(runtime=RuntimeSpec(default=False))
CRIO = RuntimeFacts(
    "crio", "1.34.1", "/etc/crio/crio.conf", "crio.service", "/run/crio/crio.sock", active=True,
    handlers=("crun", "nvidia"), effective_source="crio status config", effective_default="nvidia",
)  # fmt: skip
K3S = replace(h.CONTAINERD_ENGINE, name="k3s", unit="k3s.service", embedded_in="1.34.1+k3s1")
TEMPLATE = "/var/lib/rancher/k3s/agent/etc/containerd/config.toml.tmpl"
WHOLE, BASED = "version = 2\n[plugins]\n", '{{ template "base" . }}\n[debug]\n'


def templated(text: str, **changes: Any) -> HostFacts:
    """k3s with a template of its containerd's configuration."""
    engine = replace(K3S, config_path=TEMPLATE.removesuffix(".tmpl"), **changes)
    return h.host(runtimes=(engine,), files={TEMPLATE: FileFacts(TEMPLATE, text)})


PODMAN = RuntimeFacts("podman", "5.4.2", "/etc/containers/containers.conf", "", "", active=True, cdi=True)
NO_CDI = replace(h.TOOLKIT, cdi_devices=(), cdi_specs=())
BARE = HostFacts("bare", "bare", OsFacts("debian", "12"), KernelFacts("6.1.0"), root=False)
HANDLER = "[plugins.'io.containerd.{}'.containerd.runtimes.nvidia]\n  runtime_type = 'io.containerd.runc.v2'\n"
V2, V3 = HANDLER.format("grpc.v1.cri"), HANDLER.format("cri.v1.runtime")


def engines(*given: RuntimeFacts, **changes: Any) -> HostFacts:
    return h.host(runtimes=given, **changes)


def containerd(main: int, drop_in: int, tables: str, **changes: Any) -> HostFacts:
    """containerd 2.1 whose file of one version imports one of another."""
    texts = {MAIN: f"version = {main}\nimports = ['/etc/containerd/conf.d/*.toml']\n",
             DROP_IN: f"version = {drop_in}\n{tables}"}  # fmt: skip
    engine = replace(h.CONTAINERD_ENGINE, version="2.1.4", imports=(DROP_IN,), **changes)
    return engines(engine, files={path: FileFacts(path, text) for path, text in texts.items()})


def outcome(id: str, host: HostFacts, spec: Spec | None = None) -> CheckOutcome:
    return run_all(host, spec, load_catalog(), today=h.TODAY).results[id].outcome


GONE = "/usr/local/nvidia/toolkit/nvidia-container-runtime"


def docker(entry: str, **changes: Any) -> HostFacts:
    """Its daemon.json has this entry for nvidia."""
    text = f'{{"default-runtime": "nvidia", "runtimes": {{"nvidia": {entry}}}}}'
    return h.host(files=h.files(docker=text), runtimes=(replace(h.DOCKER_ENGINE, **changes),))


def starts(program: str, **changes: Any) -> HostFacts:
    """containerd, whose file names this program for nvidia; "" for none."""
    given = f'  options.BinaryName = "{program}"\n' if program else ""
    text = h.CONTAINERD.partition("  options")[0] + given
    return h.host(files=h.files(containerd=text), runtimes=(replace(h.CONTAINERD_ENGINE, **changes),))


def crio(program: str, **changes: Any) -> HostFacts:
    text = f'[crio.runtime.runtimes.nvidia]\nruntime_path = "{program}"\n'
    return engines(replace(CRIO, **changes), files={CRIO.config_path: FileFacts(CRIO.config_path, text)})


def crio_by(program: str, in_path: tuple[str, ...] | None, runtimes: str = "", **changes: Any) -> HostFacts:
    """CRI-O by nvidia, whose own crun is `program`; which of runc and crun PATH has; the toolkit's `runtimes`."""
    text = (
        '[crio.runtime.runtimes.nvidia]\nruntime_path = "/usr/bin/nvidia-container-runtime"\n'
        'runtime_root = "/run/crun"\n'
        f'[crio.runtime.runtimes.crun]\nruntime_path = "{program}"\nruntime_root = "/run/crun"\n'
    )
    files = {CRIO.config_path: text, TOOLKIT_CONFIG: f"[nvidia-container-runtime]\n{runtimes}\n"}
    return engines(
        replace(CRIO, **changes),
        files={path: FileFacts(path, text) for path, text in files.items()},
        toolkit=replace(h.TOOLKIT, low_level=in_path),
    )


LIBEXEC = "/usr/libexec/crio/crun"
UNTYPED = containerd(3, 3, V3.replace("runtime_type", "snapshotter"))
PASSES: tuple[tuple[str, HostFacts], ...] = (
    ("rt.crio", engines(CRIO)),
    ("rt.k3s", engines(K3S)),
    ("rt.k3s-template", templated(BASED, handlers=("runc",))),
    ("rt.k3s-template", templated(WHOLE)),
    ("rt.podman", engines(PODMAN)),
    ("rt.podman", engines(replace(PODMAN, handlers=("crun", "nvidia")), toolkit=NO_CDI)),
    ("rt.dropin-version", containerd(3, 3, V3)),
    ("rt.dropin-version", containerd(2, 2, V2)),
    ("rt.runtime-type", h.READY),
    ("rt.handler-binary", docker(f'{{"path": "{GONE}"}}')),
    ("rt.handler-binary", docker('{"path": "/opt/ours"}')),
    ("rt.handler-binary", starts(GONE)),
    ("rt.handler-binary", crio("/usr/bin/crun")),
    ("rt.handler-binary", crio_by(LIBEXEC, (), f'runtimes = ["{LIBEXEC}", "runc"]')),
    ("rt.handler-binary", crio_by("/usr/bin/crun", ("/usr/bin/crun",))),
    ("rt.handler-binary", crio_by("/usr/bin/crun", ("/usr/bin/runc", "/usr/bin/crun"), 'runtimes = ["crun", "runc"]')),
    ("rt.handler-binary", crio_by("/usr/bin/crun", None)),
    ("rt.handler-binary", engines(replace(K3S, missing_binaries=(GONE,)))),
    ("rt.runtime-type", containerd(3, 3, V3)),
)
FAULTS: tuple[tuple[str, HostFacts, str, Severity | None], ...] = (
    ("rt.crio", engines(replace(CRIO, handlers=("crun",))), "crio status config: handlers crun", None),
    ("rt.k3s", engines(replace(K3S, handlers=("runc",))), "CRI Status: handlers runc", None),
    ("rt.k3s-template", templated(WHOLE, handlers=("runc",)), f"{TEMPLATE} has no {{{{ template", None),
    ("rt.k3s-template", templated(WHOLE, active=False, handlers=()), "k3s.service is not active", None),
    ("rt.podman", engines(PODMAN, toolkit=NO_CDI), "name no nvidia.com/gpu", None),
    (
        "rt.dropin-version",
        containerd(3, 2, V2, handlers=()),
        f"{DROP_IN} is in version 2 and its importer {MAIN}",
        None,
    ),
    ("rt.dropin-version", containerd(2, 3, V3), "in version 3 and its importer", Severity.WARNING),
    (
        "rt.handler-binary",
        docker(f'{{"path": "{GONE}"}}', missing_binaries=(GONE,)),
        f"/etc/docker/daemon.json:1: handler nvidia names {GONE}",
        None,
    ),
    ("rt.handler-binary", docker('{"path": "runc"}'), "handler nvidia names runc", None),
    ("rt.handler-binary", docker('{"runtimeType": "io.containerd.runc.v2"}'), "names io.containerd.runc.v2", None),
    (
        "rt.handler-binary",
        h.host(runtimes=(replace(h.DOCKER_ENGINE, flags=("--add-runtime", "nvidia=/usr/bin/crun")),), files={}),
        "a flag of the daemon: handler nvidia names /usr/bin/crun",
        None,
    ),
    ("rt.handler-binary", starts(GONE, missing_binaries=(GONE,)), f"config.toml:4: handler nvidia names {GONE}", None),
    ("rt.handler-binary", starts("/usr/bin/runc"), "handler nvidia names /usr/bin/runc", None),
    ("rt.handler-binary", starts(""), "handler nvidia names no program", None),
    ("rt.handler-binary", crio(GONE, missing_binaries=(GONE,)), f"handler nvidia names {GONE}", None),
    ("rt.handler-binary", crio_by(LIBEXEC, ()), f"runtimes runc, crun; CRI-O's crun is {LIBEXEC}", None),
    ("rt.handler-binary", crio_by(LIBEXEC, (), """runtimes = ["[\\"crun\\"]"]"""), 'runtimes ["crun"]; CRI-O', None),
    (
        "rt.handler-binary",
        crio_by(LIBEXEC, (), f'runtimes = ["{LIBEXEC}"]', missing_binaries=(LIBEXEC,)),
        f"runtimes {LIBEXEC}",
        None,
    ),
    (
        "rt.handler-binary",
        crio_by("/usr/bin/crun", ("/usr/bin/runc", "/usr/bin/crun")),
        "runc cannot end containers that crun made",
        Severity.WARNING,
    ),
    (
        "rt.handler-binary",
        crio_by("/usr/bin/crun", None, 'runtimes = ["/usr/bin/runc"]'),
        "runc cannot end",
        Severity.WARNING,
    ),
    ("rt.runtime-type", UNTYPED, f"{MAIN}, {DROP_IN}: runtimes.nvidia has no runtime_type", None),
)
UNKNOWN: tuple[tuple[str, HostFacts, Spec | None, str], ...] = (
    ("rt.crio", h.READY, BY_CLASS, "no CRI-O runs"),
    ("rt.crio", engines(replace(CRIO, active=False)), BY_CLASS, "no CRI-O runs"),
    ("rt.crio", engines(replace(CRIO, handlers=())), BY_CLASS, "crio did not report its handlers"),
    ("rt.crio", engines(replace(CRIO, handlers=("crun",), effective_default="crun")), None, "rt.effective-default"),
    ("rt.k3s", h.READY, BY_CLASS, "no Kubernetes distribution runs"),
    ("rt.k3s", engines(replace(K3S, handlers=(), cri_error="refused")), BY_CLASS, "k3s did not report"),
    ("rt.k3s-template", engines(K3S), None, "has a template"),
    ("rt.k3s-template", replace(templated(""), files={TEMPLATE: FileFacts(TEMPLATE, unread="permission denied")}), None,
     "permission denied"),
    ("rt.podman", h.host(runtimes=(*h.READY.runtimes, PODMAN), toolkit=NO_CDI), None, "not the engine of this host"),
    ("rt.podman", engines(PODMAN, toolkit=replace(NO_CDI, cdi_specs=(h.CDI,)),
                          files={h.CDI: FileFacts(h.CDI, unread="permission denied")}), None, "permission denied"),
    ("rt.dropin-version", h.READY, None, "imports files"),
    ("rt.dropin-version", containerd(3, 3, "[["), None, "cannot be read"),
    ("rt.runtime-type", engines(CRIO), None, "no containerd"),
    ("rt.runtime-type", containerd(3, 3, "[["), None, "cannot be read"),
    ("rt.runtime-type", containerd(3, 3, ""), None, "rt.containerd-file"),
)  # fmt: skip


@pytest.mark.parametrize(("id", "host"), PASSES)
def test_what_is_well_passes(id: str, host: HostFacts) -> None:
    assert outcome(id, host, BY_CLASS) is None


@pytest.mark.parametrize(("id", "host", "quoted", "severity"), [pytest.param(*r, id=f"{r[0]}: {r[2]}") for r in FAULTS])
def test_a_fault_is_found_and_quoted(id: str, host: HostFacts, quoted: str, severity: Severity | None) -> None:
    found = outcome(id, host, BY_CLASS)
    assert isinstance(found, Finding)
    assert quoted in found.evidence
    assert (bool(found.remedy), found.severity) == (True, severity)


@pytest.mark.parametrize(("id", "host", "spec", "why"), [pytest.param(*r, id=f"{r[0]}: {r[3]}") for r in UNKNOWN])
def test_what_is_not_known_is_no_pass(id: str, host: HostFacts, spec: Spec | None, why: str) -> None:
    told = outcome(id, host, spec)
    assert isinstance(told, NotApplicable)
    assert why in told.reason


@pytest.mark.parametrize("id", sorted({row[0] for row in PASSES}))
def test_nothing_passes_where_nothing_is_known(id: str) -> None:
    assert isinstance(outcome(id, BARE), NotApplicable)
