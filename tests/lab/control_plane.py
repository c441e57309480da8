"""A cluster's control plane on a lab host of its own: etcd and the real API server 1.20.2 (images/kubernetes.sh).

Without `controllers` a test binds its pods by nodeName; with them, the real scheduler and controllers do. Nodes are
authorized as in any cluster (Node, RBAC, NodeRestriction). kubectl is typed on that host, with the administrator's
kubeconfig.
"""

from __future__ import annotations

import json
import shlex
import time
from pathlib import Path
from typing import Any

from . import images
from .authority import CURVE
from .host import Host, Result
from .lab import Lab
from .shell import sh

PORT = 6443
PKI = "/etc/kubernetes/pki"
ADMIN = "/etc/kubernetes/admin.conf"
READY_S = 60.0
ETCD = """[Service]
ExecStart=/usr/bin/etcd --data-dir /var/lib/etcd --unsafe-no-fsync --listen-client-urls http://127.0.0.1:2379 \\
  --advertise-client-urls http://127.0.0.1:2379 --listen-peer-urls http://127.0.0.1:2380
"""
API_SERVER = f"""[Unit]
Wants=etcd.service
After=etcd.service
[Service]
ExecStart=/usr/bin/kube-apiserver --etcd-servers http://127.0.0.1:2379 --secure-port {PORT} \\
  --tls-cert-file {PKI}/apiserver.crt --tls-private-key-file {PKI}/apiserver.key --client-ca-file {PKI}/ca.crt \\
  --service-account-key-file {PKI}/sa.key --service-account-signing-key-file {PKI}/sa.key \\
  --service-account-issuer https://kubernetes.default.svc --service-cluster-ip-range 10.96.0.0/24 \\
  --cert-dir /run/apiserver --allow-privileged --authorization-mode Node,RBAC \\
  --kubelet-client-certificate {PKI}/admin.crt --kubelet-client-key {PKI}/admin.key \\
  --kubelet-preferred-address-types InternalIP \\
  --enable-admission-plugins NodeRestriction --disable-admission-plugins ServiceAccount
Restart=on-failure
RestartSec=1
"""
# What DaemonSets, taints of nodes and pods that are to be placed need.
CONTROLLERS = {
    "kube-controller-manager": "--controllers daemonset,nodelifecycle --node-monitor-period 1s",
    "kube-scheduler": "",
}
CONTROLLER = """[Service]
ExecStart=/usr/bin/{name} --kubeconfig {admin} --leader-elect=false {flags}
Restart=on-failure
RestartSec=1
"""
KUBECONFIG = """apiVersion: v1
kind: Config
clusters:
- name: lab
  cluster:
    server: https://{address}:{port}
    certificate-authority: {authority}
users:
- name: {user}
  user:
    client-certificate: {certificate}
    client-key: {key}
contexts:
- name: {user}@lab
  context: {{cluster: lab, user: {user}}}
current-context: {user}@lab
"""


class ControlPlane:
    """Ready when made; gone with the lab's other hosts."""

    def __init__(self, lab: Lab, directory: Path, *, controllers: bool = False) -> None:
        """directory: for keys and certificates, on this side."""
        if not images.kubernetes_is_built():
            raise RuntimeError(f"no image of Kubernetes; run {images.BUILD_KUBERNETES}")
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self.host: Host = lab.host("debian12", above=(images.CONTROL_PLANE, images.KUBERNETES), name="control")
        sh(
            "openssl",
            "req",
            "-x509",
            *CURVE,
            "-days",
            "30",
            "-subj",
            "/CN=kubernetes",
            "-keyout",
            "ca.key",
            "-out",
            "ca.crt",
            cwd=directory,
        )
        self.certify("apiserver", "/CN=kube-apiserver", f"IP:{self.host.addr}")
        self.certify("admin", "/O=system:masters/CN=kubernetes-admin")
        sh("openssl", "genrsa", "-out", "sa.key", "2048", cwd=directory)  # 1.20 reads no other key in PKCS#8
        for name in ("ca.crt", "sa.key", "apiserver.crt", "apiserver.key", "admin.crt", "admin.key"):
            self.host.write(f"{PKI}/{name}", (directory / name).read_bytes(), 0o600)
        self.host.write(
            ADMIN, self.kubeconfig("kubernetes-admin", f"{PKI}/admin.crt", f"{PKI}/admin.key", f"{PKI}/ca.crt"), 0o600
        )
        self.host.write("/etc/systemd/system/etcd.service", ETCD)
        self.host.write("/etc/systemd/system/kube-apiserver.service", API_SERVER)
        self.host.nsrun("systemctl daemon-reload && systemctl start kube-apiserver", check=True)
        self._wait()
        if controllers:
            self._start_controllers()

    def certify(self, name: str, subject: str, alternative: str = "DNS:localhost") -> None:
        """NAME.key and NAME.crt in the directory, signed by the cluster's authority."""
        here = self._directory
        sh("openssl", "req", *CURVE, "-subj", subject, "-keyout", f"{name}.key", "-out", f"{name}.csr", cwd=here)
        (here / f"{name}.ext").write_text(f"subjectAltName={alternative}\nextendedKeyUsage=serverAuth,clientAuth\n")
        signing = ("-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "30", "-extfile", f"{name}.ext")
        sh("openssl", "x509", "-req", "-in", f"{name}.csr", *signing, "-out", f"{name}.crt", cwd=here)

    def kubeconfig(self, user: str, certificate: str, key: str, authority: str) -> str:
        """Of files where it will be read."""
        return KUBECONFIG.format(
            address=self.host.addr, port=PORT, user=user, certificate=certificate, key=key, authority=authority
        )

    def file(self, name: str) -> str:
        return (self._directory / name).read_text()

    def kubectl(self, *words: str, input: str | None = None, check: bool = True) -> Result:
        """As the administrator."""
        return self.host.nsrun(shlex.join(("kubectl", "--kubeconfig", ADMIN, *words)), input=input, check=check)

    def get(self, *words: str) -> dict[str, Any]:
        """One object; an empty one where there is none."""
        found: dict[str, Any] = json.loads(
            self.kubectl("get", "--ignore-not-found", "-o", "json", *words).stdout or "{}"
        )
        return found

    def create(self, *objects: dict[str, Any]) -> None:
        for one in objects:
            self.kubectl("create", "-f", "-", input=json.dumps(one))

    def _start_controllers(self) -> None:
        for name, flags in CONTROLLERS.items():
            unit = CONTROLLER.format(name=name, admin=ADMIN, flags=flags)
            self.host.write(f"/etc/systemd/system/{name}.service", unit)
        self.host.nsrun(f"systemctl daemon-reload && systemctl start {' '.join(CONTROLLERS)}", check=True)

    def _wait(self) -> None:
        deadline = time.monotonic() + READY_S
        while time.monotonic() < deadline:
            if self.kubectl("get", "--raw", "/readyz", check=False).stdout == "ok":
                return
            time.sleep(0.2)
        log = self.host.nsrun("journalctl -b -u etcd -u kube-apiserver --no-pager -n 40").stdout
        raise TimeoutError(f"the API server was not ready within {READY_S:.0f} s: {log}")
