"""A secret in each place where a real host keeps some: none is in what gpunode prints, writes, logs, or starts."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from . import images
from .canaries import FORM, Watch, canary, furnish
from .host import Host
from .lab import Lab
from .product_runs import Controller, expect
from .site import ROOT, site_path

SUDO = canary(99)
USERS = "/home/nosudo/k3s-server"
# What stands in a unit is in the words of the unit's own processes.
UNITS = {"docker.service", "containerd.service"}
OWN = re.compile(r"/(docker|containerd)\.service(/|$)", re.MULTILINE)
ELSEWHERE = "/proc /sys /dev /var/lib/docker /var/lib/containerd /var/log/journal /run/log /run/lab"
GUARD = "/etc/systemd/system/containerd.service.d/guard.conf"


def sings(text: str) -> list[str]:
    """The canaries in a text, with what is around them."""
    return [text[max(0, hit.start() - 80) : hit.end() + 20] for hit in FORM.finditer(text)]


def holders(host: Host) -> set[str]:
    """Every file of the host that holds a canary, and every name that is one."""
    prune = " -o ".join(f"-path {directory}" for directory in ELSEWHERE.split())
    names = f"find / \\( {prune} \\) -prune -o -name '*cnry[0-9][0-9]*' -print"
    texts = f"find / \\( {prune} \\) -prune -o -type f -size -9000k -exec grep -lE 'cnry[0-9]{{2}}' {{}} +"
    return set(host.nsrun(f"{names}; {texts}").stdout.split())


@pytest.fixture(params=["ssh", "local"])
def how(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def host(lab: Lab) -> Host:
    texts, places = furnish(images.suite("debian13"))
    assert len(places) >= 25
    made = lab.host("debian13", gpu="h100", runtime="docker", start=False, files=texts)
    made.path("/etc/apt/sources.list.d/debian.sources").unlink()
    for path in ("/home/nosudo/agent", "/usr/local/sbin/refuse"):
        made.path(path).chmod(0o755)
    for path in ("/etc/docker/daemon.json", "/etc/containerd/config.toml", "/etc/apt/auth.conf.d/90-mirror.conf"):
        made.path(path).chmod(0o600)
    made.start()
    made.nsrun("systemctl is-system-running --wait")
    made.nsrun("systemctl is-active docker containerd", check=True)
    made.nsrun("chpasswd", input=f"operator:{SUDO}\n", check=True)
    started = made.run(
        "/home/nosudo/agent </dev/null >/dev/null 2>&1 & until pgrep -x k3s-server; do :; done", "nosudo"
    )
    assert started.returncode == 0
    return made


class Heard:
    """Everything that gpunode said or saved, held against the canaries as it comes."""

    def __init__(self, host: Host, how: str, home: Path) -> None:
        self.host, self.me = host, Controller(how, home)
        self.become: tuple[str, ...] = ()
        if how == "ssh":
            secret = home / "pass"
            secret.write_text(f"{SUDO}\n")
            secret.chmod(0o600)
            self.become = ("--user", "operator", "--become-pass-file", str(secret))
        self.saved = str(home / "saved") if how == "ssh" else "/root/saved"

    def __call__(self, *words: str, code: int | None = None) -> str:
        result = self.me.gpunode(self.host, *words, *self.become)
        text = result.stdout + "\n" + result.stderr
        assert sings(text) == [], words
        assert "internal error" not in text
        assert "Traceback" not in text
        if code is not None:
            expect(result, code)
        return text

    def file(self, *words: str, flag: str) -> str:
        """What the command saved."""
        self(*words, flag, self.saved, code=0)
        text = Path(self.saved).read_text() if self.me.how == "ssh" else self.host.read(self.saved)
        assert len(text) > 100
        assert sings(text) == [], words
        return text


def test_no_secret_of_a_host_comes_out(lab: Lab, host: Host, how: str, tmp_path: Path) -> None:
    host.install_gpunode(ROOT, site_path(ROOT / "pyproject.toml"))
    held = holders(host)
    assert len(held) > 15
    heard = Heard(host, how, tmp_path)
    trust = ("--trust-key", lab.repo_fingerprint)
    with Watch() as watch:
        for form in ((), ("-v",), ("--json",)):
            heard("detect", *form, code=0)
            heard("plan", *trust, *form, code=0)
        heard("plan", "--explain", *trust)
        heard("check", "-v")
        recorded = heard.file("detect", flag="--record")
        assert recorded.count("MASKED") > 10
        heard.file("detect", "--json", flag="--output")
        heard.file("plan", *trust, "--json", flag="--output")

        host.write(GUARD, "[Service]\nExecStartPre=/usr/local/sbin/refuse\n")
        host.nsrun("systemctl daemon-reload", check=True)
        refused = heard("setup", "--yes", "-v", *trust, code=1)
        assert "refused: login with" in " ".join(refused.split()), "the evidence is the unit's journal"
        host.nsrun(f"rm {GUARD}; systemctl daemon-reload; systemctl reset-failed; systemctl start containerd docker")

        heard("setup", "--yes", "--json", *trust, code=0)
        heard("check", "--json")
        heard("detect", "-v", code=0)
        heard("undo", "--dry-run", "-v", code=0)
        heard("undo", "--yes", "--packages", "-v", code=0)

    # The processes: the watch saw gpunode's and the daemons', and only the daemons and the user's own hold any.
    assert watch.read_only > 20
    assert any(" detect" in words for words in watch.programs)
    assert any(OWN.search(sight.cgroup) for sight in watch.sights)
    leaks = [s for s in watch.sights if not OWN.search(s.cgroup) and not s.argv.startswith(USERS)]
    assert not leaks, "\n".join(map(str, leaks))

    # The host: nothing but backups, which root alone reads, and what had them before.
    fresh = {path for path in holders(host) - held if path != heard.saved}
    assert all(path.startswith("/var/lib/gpunode/backup/") for path in fresh), fresh
    assert fresh
    kept = "/var/lib/gpunode/backup /var/lib/gpunode/journal.jsonl"
    assert host.nsrun(f"find {kept} -perm /077", check=True).stdout == ""
    logged = [json.loads(line) for line in host.nsrun("journalctl -o json", check=True).stdout.splitlines()]
    assert how == "local" or any(entry.get("_COMM") == "sudo" for entry in logged)
    others = [entry for entry in logged if not UNITS & {entry.get("_SYSTEMD_UNIT"), entry.get("UNIT")}]
    assert sings(json.dumps(others)) == []

    # The controller: its password file.
    assert [
        str(path) for path in tmp_path.rglob("*") if path.is_file() and sings(path.read_text(errors="replace"))
    ] == ([str(tmp_path / "pass")] if how == "ssh" else [])
