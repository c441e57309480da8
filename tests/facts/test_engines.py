"""CRI-O, podman and the Kubernetes distributions in the probe's stream, and under the shells that send it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from gpunode.facts.collect import assemble
from gpunode.facts.engines import own_files
from gpunode.facts.processes import parse_processes
from gpunode.facts.recordings import masked
from gpunode.facts.runtimes import socket_modes
from gpunode.facts.wire import Sections, decode
from gpunode.model.facts import HostFacts, RuntimeFacts
from gpunode.model.files import FileFacts
from tests.facts.hosts import ROOTS, in_namespaces, make_root, run_probe, snapshot
from tests.facts.test_probe import shell
from tests.recorded.construct import stream
from tests.recorded.engines import ENGINES

__all__ = ["shell"]

HOSTS = {recipe.slug: assemble(stream(recipe), recipe.slug) for recipe in ENGINES}


def only(slug: str) -> RuntimeFacts:
    (engine,) = HOSTS[slug].runtimes
    return engine


def test_k3s_is_named_by_its_unit_and_its_own_files_are_known() -> None:
    engine = only("ubuntu2404-k3s-l4")
    assert (engine.name, engine.version, engine.embedded_in, engine.unit) == (
        "k3s",
        "2.1.4",
        "1.33.5+k3s1",
        "k3s.service",
    )
    assert engine.config_path == "/var/lib/rancher/k3s/agent/etc/containerd/config.toml"
    assert engine.socket == "/run/k3s/containerd/containerd.sock"
    assert (engine.imports, engine.distribution_flags) == (("/etc/rancher/k3s/config.yaml",), ("server",))
    assert (engine.effective_default, engine.cdi, engine.active) == ("runc", True, True)
    assert HOSTS["ubuntu2404-k3s-l4"].kubernetes.distribution == "k3s"


def test_the_config_that_k3s_has_by_its_environment_is_known() -> None:
    recipe = next(one for one in ENGINES if one.slug == "ubuntu2404-k3s-l4")
    changed = stream(recipe).replace(b"|comm=containerd\n", b"|comm=containerd\n|config_file=/srv/node.yaml\n")
    (engine,) = [one for one in assemble(changed, "k3s").runtimes if one.name == "k3s"]
    assert engine.distribution_config == "/srv/node.yaml"
    assert only("ubuntu2404-k3s-l4").distribution_config is None


@pytest.mark.parametrize(
    ("variable", "known"),
    [("K3S_CONFIG_FILE=/srv/k3s.yaml", "/srv/k3s.yaml"), ("RKE2_CONFIG_FILE=/srv/rke2.yaml", "/srv/rke2.yaml"),
     ("K3S_CONFIG_FILE=https://me:K10secret@srv/k3s", "URL"), ("K3S_CONFIG_FILE=", None), ("PATH=/bin", None)],
)  # fmt: skip
def test_of_a_containerds_environment_only_the_config_of_its_k3s_is_read(
    variable: str, known: str | None, shell: tuple[str, ...], tmp_path: Path
) -> None:
    root = make_root(tmp_path)
    (root / "proc/950/environ").write_text(f"K3S_TOKEN=K10secret\0{variable}\0")
    done = run_probe(shell, root)
    assert [one.config_file for one in parse_processes(decode(done.stdout)) if one.pid == 950] == [known]
    assert b"K10secret" not in done.stdout


def test_of_k3s_files_are_those_that_it_merges() -> None:
    """`.yaml` and `.yml` in any case, of config.yaml.d itself."""
    main = "/etc/rancher/k3s/config.yaml"
    read = [main, f"{main}.d/10-a.yml", f"{main}.d/20-b.YAML"]
    passed = [f"{main}.d/15.yaml.bak", f"{main}.d/16/c.yaml", f"{main}.bak", "/etc/rancher/rke2/config.yaml"]
    files = {path: FileFacts(path, "x") for path in (*reversed(read), *passed)}
    assert own_files(Sections({}, files), "k3s") == tuple(read)


def test_rke2_k0s_and_microk8s() -> None:
    rke2, k0s, microk8s = only("ubuntu2204-rke2-a30"), only("debian12-k0s-a30"), only("ubuntu2204-microk8s-t4")
    assert (rke2.name, rke2.unit, rke2.distribution_flags) == ("rke2", "rke2-agent.service", ("agent",))
    assert (k0s.name, k0s.unit, k0s.embedded_in) == ("k0s", "k0sworker.service", "1.33.5+k0s.0")
    assert (microk8s.name, microk8s.snap, microk8s.embedded_in) == ("microk8s", True, "1.33.5")
    assert HOSTS["ubuntu2204-microk8s-t4"].kubernetes.kubelet


def test_crio_says_its_default_and_runtimes() -> None:
    engine = only("el9-crio-a100")
    assert (engine.name, engine.version, engine.unit, engine.socket) == (
        "crio", "1.33.5", "crio.service", "/var/run/crio/crio.sock",
    )  # fmt: skip
    assert (engine.effective_default, engine.effective_source) == ("crun", "crio status config")
    assert (engine.handlers, engine.imports) == (("crun", "runc"), ("/etc/crio/crio.conf.d/10-crio.conf",))


def test_podman_has_neither_unit_nor_socket() -> None:
    engine = only("debian13-podman-rtx4090")
    assert (engine.name, engine.version, engine.unit, engine.socket) == ("podman", "5.4.2", "", "")
    assert (engine.effective_default, engine.handlers, engine.binary) == ("crun", ("crun",), "/usr/bin/podman")


PODMAN = """#!/bin/sh
case "$*" in
--version) echo "podman version 5.4.2" ;;
"info "*) echo "default=crun" ;;
*) exit 125 ;;
esac
"""
K3S = "#!/bin/sh\n[ \"$*\" = --version ] && echo 'k3s version v1.31.4+k3s1 (a562d090)'\n"
CRIO = "#!/bin/sh\n[ \"$*\" = --version ] && echo 'crio version 1.30.3'\n"
SYSTEMCTL = """#!/bin/sh
echo Id=k3s.service
echo LoadState=loaded
echo ActiveState=inactive
echo 'ExecStart={ path=/usr/local/bin/k3s ; argv[]=/usr/local/bin/k3s server --default-runtime crun ; }'
"""
FILES = {
    "proc/700/comm": "crio\n",
    "proc/700/status": "Name:\tcrio\nPPid:\t1\n" + ROOTS,
    "proc/700/cgroup": "0::/system.slice/crio.service\n",
    "proc/700/cmdline": "/usr/bin/crio\0--config-dir\0/srv/crio.d\0",
    "srv/crio.d/.99-nvidia.toml.gpunode": "[crio.runt",
    "srv/crio.d/10-crun.conf": '[crio.runtime]\ndefault_runtime = "crun"\n',
    "srv/crio.d/10-crun.d/more/x.conf": "[crio]\n",
    "srv/crio.d/.hidden.conf": "[crio]\n",
    "etc/rancher/k3s/config.yaml": "token: K10hunter2::server:abc\ndefault-runtime: crun\n",
    "etc/rancher/k3s/config.yaml.d/10-a.yaml": "selinux: true\n",
    "var/lib/rancher/k3s/agent/etc/containerd/config.toml.tmpl": '{{ template "base" . }}\n',
    "etc/containers/containers.conf.d/10-a.conf": '[engine]\nruntime = "crun"\n',
    "usr/share/containers/containers.conf": "[engine]\n# runtime = 'crun'\n",
    "etc/k0s/containerd.d/a.toml": "version = 2\n",
}


def root_with(tmp_path: Path, *, used: bool = True) -> Path:
    root = make_root(tmp_path, {"podman": PODMAN, "k3s": K3S, "crio": CRIO, "systemctl": SYSTEMCTL})
    for name, text in {**FILES, **({"var/lib/containers/storage/db.sql": ""} if used else {})}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (root / "proc/700/exe").symlink_to("/usr/bin/crio")
    in_namespaces(root, "700")
    return root


def probed(shell: tuple[str, ...], root: Path) -> HostFacts:
    done = run_probe(shell, root)
    assert (done.returncode, done.stderr) == (0, b"")
    return assemble(done.stdout, "gpu07")


def test_every_shell_finds_them_and_changes_nothing(shell: tuple[str, ...], tmp_path: Path) -> None:
    root = root_with(tmp_path)
    before = snapshot(root)
    host = probed(shell, root)
    assert snapshot(root) == before
    assert [engine.name for engine in host.runtimes] == ["docker", "containerd", "k3s", "crio", "podman"]
    k3s, crio, podman = host.runtimes[2:]
    assert (k3s.active, k3s.embedded_in, k3s.distribution_flags) == (
        False,
        "1.31.4+k3s1",
        ("server", "--default-runtime", "crun"),
    )
    names = [path.removeprefix("/srv/crio.d/") for path in crio.imports]
    assert (crio.version, crio.active) == ("1.30.3", True)
    assert names == [".hidden.conf", "10-crun.conf", "10-crun.d/more/x.conf"]
    assert crio.flags == ("--config-dir", "/srv/crio.d")
    assert crio.cri_error is not None
    assert (podman.version, podman.effective_default, podman.cri_error) == ("5.4.2", "crun", None)
    read = {f"/{name}" for name in FILES if not name.startswith(("proc/", "usr/"))}
    assert read <= {path for path, file in host.files.items() if file.text is not None}
    assert "/usr/share/containers/containers.conf" not in host.files


BOUND = """#!/bin/sh
echo Id=containerd.service
for name in RequiredBy RequisiteOf BoundBy ConsistsOf; do
  case $4 in *,$name,*) echo $name=with-$name.service docker.service ;; esac
done
"""


def test_systemd_is_asked_what_goes_down_with_an_engine(tmp_path: Path) -> None:
    host = probed(("sh",), make_root(tmp_path, {"systemctl": BOUND}))
    named = ("RequiredBy", "RequisiteOf", "BoundBy", "ConsistsOf")
    found = host.services["containerd.service"].dependents
    assert set(found) == {"docker.service", *(f"with-{name}.service" for name in named)}
    assert len(found) == 5


def test_a_podman_that_was_never_used_is_only_asked_for_its_version(tmp_path: Path) -> None:
    (podman,) = [e for e in probed(("sh",), root_with(tmp_path, used=False)).runtimes if e.name == "podman"]
    assert (podman.version, podman.effective_default, podman.active) == ("5.4.2", None, True)


def test_a_podman_that_fails_says_why(tmp_path: Path) -> None:
    root = root_with(tmp_path)
    (root / "usr/bin/podman").write_text(
        "#!/bin/sh\necho 'Failed to obtain podman configuration: toml: line 2' >&2\nexit 1\n"
    )
    (podman,) = [e for e in probed(("sh",), root).runtimes if e.name == "podman"]
    assert podman.cri_error == "Failed to obtain podman configuration: toml: line 2"


def test_a_recording_holds_no_token(tmp_path: Path) -> None:
    sent = run_probe(("sh",), root_with(tmp_path)).stdout
    assert b"hunter2::server" in sent
    assert b"hunter2" not in masked(sent, mask_host=False)
    assert b"default-runtime: crun" in masked(sent, mask_host=False)


def test_a_drop_in_that_may_not_be_read_is_named(tmp_path: Path) -> None:
    """Root reads everything, so root asks as nobody; pytest's own directories are closed to others."""
    nobody = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups") if os.geteuid() == 0 else ()
    with tempfile.TemporaryDirectory(prefix="gpunode-test-") as open_directory:
        Path(open_directory).chmod(0o755)
        root = root_with(Path(open_directory))
        (root / "etc/containers/containers.conf.d/10-a.conf").chmod(0)
        host = probed((*nobody, "sh"), root)
    assert host.file("/etc/containers/containers.conf.d/10-a.conf").unread == "permission denied"


@pytest.mark.parametrize(
    ("text", "modes"),
    [
        ("c1b0 /var/run/docker.sock\nc1b0 /var/run/docker.sock\n", {"/var/run/docker.sock": 0o660}),
        ("c1b6 /run/a b.sock\n", {"/run/a b.sock": 0o666}),
        ("cfff /x\n", {"/x": 0o7777}),
        ("\nc1b0\nC1B0 /x\nc1b /x\nffffc1b0 /x\nc1b0 x\n-1b0 /x\n", {}),
        ("", {}),
    ],
    ids=["twice", "a blank", "all bits", "nothing that stat prints", "none asked"],
)
def test_the_mode_of_a_socket_is_read_from_stats_number(text: str, modes: dict[str, int]) -> None:
    assert socket_modes(text) == modes
