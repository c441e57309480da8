"""User-data for cloud-init: the spec, and a script that cloud-init runs at each boot until a setup ended well.

A script of every boot and not runcmd, which is for the first boot alone: a setup that needs a reboot ends in the
second, and `cloud-init status` there is to say how (cloud-init's modules scripts_per_boot and write_files).
"""

from __future__ import annotations

from gpunode.export.files import ZIPAPP, ExportedFile, Request, text_file
from gpunode.export.scripts import host_script
from gpunode.kubernetes.documents import documents

STATE = "/var/lib/gpunode/cloud-init"
SCRIPT = "/var/lib/cloud/scripts/per-boot/gpunode"
MADE = "Made by `gpunode export cloud-init`."
# AWS: 16 KB before base64 (EC2's user guide, "instance user data"). Others take more.
SMALLEST_LIMIT_BYTES = 16 << 10


def cloud_init(request: Request) -> tuple[ExportedFile, ...]:
    """`user-data`, and gpunode, to be put where request.carried says. Raises ValueError where it says nothing."""
    if request.carried.is_inside:
        raise ValueError("user-data has no room for gpunode")
    script = host_script(request, STATE, "first_boot", head=MADE, key=request.key)
    files = [
        {"path": f"{STATE}/spec.yaml", "owner": "root:root", "permissions": "0600", "content": request.spec},
        {"path": SCRIPT, "owner": "root:root", "permissions": "0700", "content": script},
    ]
    text = "#cloud-config\n" + documents([{"write_files": files}], MADE)
    return text_file("user-data", text), ExportedFile(ZIPAPP, request.carried.zipapp, 0o755)
