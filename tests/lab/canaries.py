"""Secrets in the places where a GPU host keeps some, each one different, and a watch over every process's words."""

from __future__ import annotations

import contextlib
import itertools
import re
import threading
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

FORM = re.compile(r"cnry[0-9]{2}")
# CANARY becomes a word of its own at each place. What the daemons start with is what the real ones take.
FILES = {
    "/etc/docker/daemon.json": """{
  "labels": ["registry-password=CANARY", "api_token=CANARY"],
  "proxies": {"http-proxy": "http://me:CANARY@proxy.lab:3128", "https-proxy": "http://CANARY@proxy.lab:3128"}
}
""",
    "/etc/systemd/system/docker.service.d/log.conf": """[Service]
ExecStart=
ExecStart=/usr/sbin/dockerd -H fd:// --containerd=/run/containerd/containerd.sock --log-driver=splunk \
--log-opt splunk-token=CANARY --log-opt splunk-url=https://me:CANARY@splunk.lab:8088
""",
    "/etc/systemd/system/docker.service.d/proxy.conf": """[Service]
Environment="HTTP_PROXY=http://me:CANARY@proxy.lab:3128" "REGISTRY_TOKEN=CANARY"
""",
    "/etc/default/docker": "AWS_SECRET_ACCESS_KEY=CANARY\nHTTPS_PROXY=http://me:CANARY@proxy.lab:3128\n",
    "/etc/containerd/config.toml": """version = 2
imports = ["/etc/containerd/conf.d/*.toml"]
[plugins."io.containerd.grpc.v1.cri".registry.headers]
  Authorization = ["Basic CANARY"]
  X-Meta-Token = ["CANARY"]
[plugins."io.containerd.grpc.v1.cri".registry.mirrors."docker.io"]
  endpoint = ["https://me:CANARY@mirror.lab"]
[plugins."io.containerd.grpc.v1.cri".registry.configs."r.lab".auth]
  username = "me"
  password = "CANARY"  # was: password = "CANARY"
""",
    "/etc/containerd/conf.d/registry.toml": """version = 2
[plugins."io.containerd.grpc.v1.cri".registry.configs."s.lab".auth]
  auth = "CANARY"
  identitytoken = '''CANARY'''
""",
    "/etc/containerd/certs.d/r.lab/hosts.toml": '[host."https://r.lab".header]\n  authorization = "Basic CANARY"\n',
    "/etc/systemd/system/containerd.service.d/proxy.conf": (
        '[Service]\nEnvironment="HTTPS_PROXY=http://me:CANARY@proxy.lab:3128" CONTAINERD_PASSWORD=CANARY\n'
    ),
    "/root/.docker/config.json": '{"auths": {"r.lab": {"auth": "CANARY", "identitytoken": "CANARY"}}}\n',
    "/etc/apt/apt.conf.d/80proxy": 'Acquire::http::Proxy::mirror.lab "http://me:CANARY@proxy.lab:3128";\n',
    "/etc/apt/auth.conf.d/90-mirror.conf": "machine mirror.lab login me password CANARY\n",
    "/etc/apt/sources.list.d/debian.list": (
        "deb [signed-by=/usr/share/keyrings/lab-debian.asc] http://me:CANARY@deb.lab/debian SUITE main\n"
    ),
    # Not NVIDIA's by its options: disabled by setup, which says why.
    "/etc/apt/sources.list.d/nvidia-container-toolkit.list": (
        "deb [trusted=yes] https://me:CANARY@nvidia.github.io/libnvidia-container/stable/deb/amd64 /\n"
    ),
    "/etc/apt/sources.list.d/old.sources": (
        "Enabled: no\nTypes: deb\nURIs: https://me:CANARY@developer.download.nvidia.com/compute/cuda/repos/debian12/x86_64/\n"
        "Suites: /\n"
    ),
    "/etc/rancher/k3s/config.yaml": (
        "token: CANARY\nagent-token: CANARY\ndatastore-endpoint: mysql://k:CANARY@tcp(db.lab:3306)/k\n"
    ),
    "/etc/rancher/k3s/registries.yaml": "configs:\n  r.lab:\n    auth:\n      username: me\n      password: CANARY\n",
    "/etc/crio/crio.conf.d/10-auth.conf": '[crio.image]\nglobal_auth = "CANARY"\n',
    "/root/.netrc": "machine mirror.lab login me password CANARY\n",
    # A user's process by a daemon's name: told of, with a secret among its words.
    "/home/nosudo/agent": (
        "#!/bin/sh\ncp /bin/sh /home/nosudo/k3s-server\n"
        "exec /home/nosudo/k3s-server -c 'sleep 100000; :' server --token CANARY --etcd-s3-secret-key=CANARY\n"
    ),
    # The journal of a unit that refuses is evidence, and is shown.
    "/usr/local/sbin/refuse": (
        "#!/bin/sh\ngrep -rqs nvidia /etc/containerd || exit 0\n"
        "echo 'refused: login with password=CANARY at https://me:CANARY@r.lab/'\nexit 1\n"
    ),
}


def furnish(suite: str) -> tuple[dict[str, str], dict[str, str]]:
    """The files' texts, and each canary with its place."""
    numbers, places, texts = itertools.count(), dict[str, str](), dict[str, str]()
    for path, text in FILES.items():

        def sung(_: re.Match[str], path: str = path) -> str:
            word = canary(next(numbers))
            places[word[:6]] = path
            return word

        texts[path] = re.sub("CANARY", sung, text.replace("SUITE", suite))
    return texts, places


def canary(number: int) -> str:
    """As long and as mixed as a password; nothing in its own form gives it away."""
    return f"cnry{number:02d}Zq7vX"


@dataclass(frozen=True)
class Sight:
    """One process that held a canary in its arguments or environment."""

    cgroup: str
    argv: str
    canaries: frozenset[str]


@dataclass
class Watch:
    """Looks at every process in sight, the hosts' as well, again and again while gpunode runs."""

    sights: set[Sight] = field(default_factory=set)
    programs: set[str] = field(default_factory=set)  # what was seen at all: the first words of each process
    read_only: int = 0

    def __enter__(self) -> Watch:
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._end.wait(0.02):
            for process in Path("/proc").glob("[0-9]*"):
                with contextlib.suppress(OSError):  # it is gone, or no more than a zombie
                    self._look(process)
            self.read_only += 1

    def _look(self, process: Path) -> None:
        argv = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        self.programs.add(argv[:200])
        if found := FORM.findall(argv + (process / "environ").read_bytes().decode(errors="replace")):
            # Last: what a daemon's unit starts is in the unit's cgroup before it has the unit's words.
            self.sights.add(Sight((process / "cgroup").read_text(), argv, frozenset(found)))
