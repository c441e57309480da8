"""One throw-away machine, as a test sees it."""

from __future__ import annotations

import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path

from . import faults, network
from .cgroups import cgroup_path, joining
from .containment import inside
from .filesystem import Filesystem
from .machine import Machine

STATE = "/run/lab"  # the host's view of Host.state: hardware, faults, what the driver stubs keep
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
REBOOT_S = 180  # systemd gives a unit 90 s to stop, a user's dockerd among them
UNITS_S = 60  # a unit that starts for longer is the test's own
KEY_TYPES = ("ed25519", "ecdsa", "rsa")
Result = subprocess.CompletedProcess[str]


@dataclass(frozen=True)
class Recipe:
    """What a test asked for."""

    distribution: str
    gpu: str
    runtime: str | None
    files: dict[str, str]
    lower: tuple[Path, ...]
    disk_mib: int | None
    tmpfs_root: str | None


class Host:
    """ssh (`run`) is how gpunode reaches it; `nsrun`, `read`, `write` go behind sshd's back."""

    port = 22
    user = "root"

    def __init__(self, name: str, number: int, run_directory: Path, key: Path, recipe: Recipe) -> None:
        self.name = name
        self.addr = network.host_address(number)
        self.recipe = recipe
        self.key = key
        directory = run_directory / name
        self.state = directory / "state"
        self.files = Filesystem(directory, recipe.lower, recipe.disk_mib, recipe.tmpfs_root)
        self.machine = Machine(
            name=f"{run_directory.name}-{number}",
            hostname=name,
            root=self.files.root,
            cgroup=cgroup_path(run_directory.name, name),
            binds={
                self.files.data / "docker": "/var/lib/docker",
                self.files.data / "containerd": "/var/lib/containerd",
                self.state: STATE,
                **({self.files.data / "podman": "/var/lib/containers"} if recipe.runtime == "podman" else {}),
            },
            console=directory / "console.log",
        )

    # Life

    def start(self, *, wait: bool = True) -> None:
        self.files.mount()
        self.machine.start()
        if wait:
            self.wait()

    def wait(self) -> None:
        """Until sshd answers and the boot is over: sshd is up well before docker."""
        self.machine.wait_for_port(self.addr, self.port)
        self._wait_for_units()

    def reboot(self, command: str = "systemctl reboot") -> None:
        """Reboot as root over ssh, and wait until the next boot is complete."""
        boots = self.machine.boots
        self.run(command, user="root")  # its exit status is lost with the connection
        self.wait_for_boot(boots)
        self._wait_for_units()

    def wait_for_boot(self, after: int) -> None:
        """Until sshd answers on a later boot than number `after` (see `boots`); for reboots that gpunode asks for."""
        self.machine.wait_for_port(self.addr, self.port, after_boot=after, limit_s=REBOOT_S)

    def _wait_for_units(self) -> None:
        self.nsrun(f"timeout {UNITS_S} systemctl is-system-running --wait")

    def stop(self) -> None:
        self.machine.stop()

    def kill(self) -> None:
        """Processes end at once; files stay as they were."""
        self.machine.kill()

    def power_cut(self) -> None:
        """`kill`, and what was not synced is lost too. Needs disk=."""
        if not self.recipe.disk_mib:
            raise ValueError(f"{self.name}: power_cut needs a host made with disk=")
        self.files.lose_unsynced()
        self.machine.kill()
        self.files.replay_journal()

    def destroy(self) -> None:
        self.machine.kill()
        self.files.destroy()
        network.forget_neighbour(self.addr)

    @property
    def boots(self) -> int:
        return self.machine.boots

    def boot_id(self) -> str:
        """nspawn fakes a new one for each boot; the uptime is this machine's and says nothing."""
        return self.nsrun("cat /proc/sys/kernel/random/boot_id").stdout.strip()

    def snapshot(self, tag: str) -> None:
        """Keep the disk under a name. Take it after stop() (clean) or kill() (crashed)."""
        self._must_be_down("snapshot")
        self.files.snapshot(tag)

    def restore(self, tag: str) -> None:
        """Put the disk back as it was at snapshot(tag); then start()."""
        self._must_be_down("restore")
        self.files.restore(tag)

    # Commands

    def run(
        self,
        cmd: str,
        user: str | None = None,
        input: str | None = None,
        timeout: float = 300,
        check: bool = False,
    ) -> Result:
        """Over ssh, through the login shell of `user`."""
        return _checked(
            subprocess.run(
                [*self.ssh_argv(user), cmd], text=True, capture_output=True, input=input, timeout=timeout, check=False
            ),
            check,
        )

    def nsrun(self, cmd: str, input: str | None = None, timeout: float = 300, check: bool = False) -> Result:
        """As root in the host's namespaces and root: works with sshd dead, the link down or a strange shell; at once.

        Raises containment.NotOurs where it is not proven that they are this host's.
        """
        with self.machine.door() as enter:
            done = subprocess.run(
                [*joining(self.machine.cgroup), *enter, "sh", "-c", cmd],
                text=True,
                capture_output=True,
                input=input,
                timeout=timeout,
                check=False,
                env={"PATH": PATH, "LANG": "C.UTF-8", "HOME": "/root"},
            )
        return _checked(done, check)

    def fill(self, path: str) -> None:
        """Fill the host's disk with one file; only a disk that the lab made with a size, and that much at most."""
        size_mib = self.files.made_size_mib()
        name, under = shlex.quote(path), f"{path.rpartition('/')[0]}/"
        if any(under.startswith(f"{bound}/") for bound in self.machine.binds.values()):
            raise ValueError(f"{self.name}: {path} is not on the disk that was made with a size")
        self.nsrun(
            f"dd if=/dev/zero of={name} bs=1M count={size_mib}; "
            f"dd if=/dev/zero of={name} bs=1k count=2048 oflag=append conv=notrunc; sync"  # what no whole MiB fits in
        )

    def ssh_argv(self, user: str | None = None) -> list[str]:
        options = (
            "StrictHostKeyChecking=yes",
            f"UserKnownHostsFile={self._known_hosts_file()}",
            "GlobalKnownHostsFile=none",
            "LogLevel=ERROR",
            "BatchMode=yes",
            "IdentitiesOnly=yes",
        )
        flags = [word for option in options for word in ("-o", option)]
        return [
            "ssh",
            "-F",
            "none",
            "-i",
            str(self.key),
            "-p",
            str(self.port),
            *flags,
            f"{user or self.user}@{self.addr}",
        ]

    def ssh_config_text(self, user: str | None = None) -> str:
        """A `Host` block for ~/.ssh/config, with strict host key checking."""
        return (
            f"Host {self.name}\n"
            f"    HostName {self.addr}\n"
            f"    Port {self.port}\n"
            f"    User {user or self.user}\n"
            f"    IdentityFile {self.key}\n"
            f"    IdentitiesOnly yes\n"
            f"    UserKnownHostsFile {self._known_hosts_file()}\n"
            f"    StrictHostKeyChecking yes\n"
        )

    def known_hosts_line(self, key_type: str = "ed25519") -> str:
        """One line of known_hosts for this host's address and name."""
        kind, key = self.read(f"/etc/ssh/ssh_host_{key_type}_key.pub").split()[:2]
        address = self.addr if self.port == 22 else f"[{self.addr}]:{self.port}"
        return f"{address},{self.name} {kind} {key}\n"

    def known_hosts_text(self) -> str:
        return "".join(map(self.known_hosts_line, KEY_TYPES))

    def know_keys(self) -> None:
        """The host keys that it has now are those that `run` and `ssh_config_text` know, whatever was known before."""
        (self.state.parent / "known_hosts").write_text(self.known_hosts_text())

    # Files

    def path(self, path: str) -> Path:
        """Where a file of the host lies on this machine; a link in its place is not followed, and is never to be."""
        return inside(self.files.root, path)

    def write(self, path: str, text: str | bytes, mode: int = 0o644) -> None:
        """Replaces a symlink instead of following it."""
        target = self.path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.is_symlink():
            target.unlink()
        target.write_bytes(text.encode() if isinstance(text, str) else text)
        target.chmod(mode)

    def read(self, path: str) -> str:
        return inside(self.files.root, path, follow=True).read_text()

    def exists(self, path: str) -> bool:
        return inside(self.files.root, path, follow=True).exists()

    # Misfortune and the product

    def fault(self, name: str, on: bool | str = True) -> None:
        """Switch one of faults.DRIVER; a string is the fault's value, such as seconds."""
        faults.set_driver_fault(self.state, name, on)

    def unplug(self) -> None:
        network.set_link(self.machine.name, up=False)

    def plug_in(self) -> None:
        network.set_link(self.machine.name, up=True)
        network.forget_neighbour(self.addr)  # "no route to host" is remembered for a while

    def install_gpunode(self, source_tree: Path, site: Path) -> None:
        """The product on the host itself, for local runs: /usr/local/bin/gpunode. `site` is build_site()'s."""
        from .product import install  # late: product imports Host

        install(self, source_tree, site)

    def _known_hosts_file(self) -> Path:
        path = self.state.parent / "known_hosts"
        if not path.exists():
            self.know_keys()
        return path

    def _must_be_down(self, deed: str) -> None:
        if self.machine.is_running:
            raise RuntimeError(f"{self.name}: {deed} needs the host down; stop() or kill() it first")


def _checked(result: Result, check: bool) -> Result:
    if check and result.returncode:
        raise AssertionError(f"{result.args[-1]!r}: exit {result.returncode}\n{result.stdout}{result.stderr}")
    return result
