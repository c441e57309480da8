"""What can go wrong below gpunode, by name. Web and DNS faults are attributes of web.Web and dns.Dns."""

from __future__ import annotations

from pathlib import Path

# fault: what the stubs then do. Messages are the kernel's and the tools' own.
DRIVER = {
    "key_rejected": "modprobe: Key was rejected by service (Secure Boot, module not signed by a known key)",
    "lockdown": "modprobe: Operation not permitted",
    "vermagic": "modprobe: Exec format error",
    "no_device": "modprobe: No such device",
    "symbol": "modprobe: Unknown symbol in module",
    "busy": "modprobe: Device or resource busy",
    "in_use": "modprobe -r: Module nvidia is in use",
    "nouveau": "from the next boot nouveau holds the GPUs, unless it is blacklisted",
    "secure_boot": "from the next boot the firmware says that Secure Boot is on",
    "dkms_fail": "the module does not build; the kernel package is left half-configured",
    "dkms_fail_next": "as dkms_fail, but only for kernels that do not run",
    "dkms_slow": "building takes this many seconds (value)",
    "dkms_held": "building waits until this fault is lifted",
    "dkms_leaves": "building leaves a process behind, as a script does that starts a daemon by itself",
    "boot_held": "from the next boot on a boot waits, without sshd, until this fault is lifted",
    "smi_hang": "nvidia-smi does not return",
    "fabric_fail": "nvidia-fabricmanager starts and fails",
    "no_gpus": "nvidia-smi: No devices were found",
}


def set_driver_fault(state: Path, name: str, on: bool | str) -> None:
    """A file per fault, in the directory that the host sees as /run/lab/faults."""
    if name not in DRIVER:
        raise ValueError(f"fault {name!r} is not one of {', '.join(DRIVER)}")
    path = state / "faults" / name
    if on is False:
        path.unlink(missing_ok=True)
    else:
        path.write_text(on if isinstance(on, str) else "")
