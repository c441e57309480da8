"""A configuration for mkosi to include: gpunode, the spec, and the script that runs one by the other in the image.

mkosi copies `mkosi.extra` into the image and then runs `mkosi.postinst.chroot` in it (mkosi(1), "Execution flow"). The
script believes neither file before it has its SHA-256.
"""

from __future__ import annotations

from gpunode.export.files import ZIPAPP, ExportedFile, Request, text_file
from gpunode.export.scripts import image_script, image_spec

# Stays in the image: its first boot has gpunode and the spec.
STATE = "/var/lib/gpunode/image"
# Where mkosi's copies go: no directory of their own, which would be left empty; not /tmp, which is not the image's.
COPIED = f"/var/lib/{ZIPAPP}"
COPIED_SPEC = "/var/lib/gpunode-spec.yaml"
EXTRA = "mkosi.extra"
MADE = "Made by `gpunode export mkosi`."
# In a section that mkosi 14 does not have: it includes no directories, and gets these files as options.
CONF = f"""# {MADE} Name this directory in your image's mkosi.conf:
#     [Include]
#     Include=gpunode
[Build]
# For the packages of driver and toolkit.
WithNetwork=yes
"""


def mkosi(request: Request) -> tuple[ExportedFile, ...]:
    """mkosi.conf, mkosi.postinst.chroot, and below mkosi.extra gpunode.pyz and spec.

    Raises ValueError where request.carried is not the file that mkosi copies.
    """
    if request.carried.path != COPIED:
        raise ValueError(f"mkosi copies gpunode to {COPIED}")
    return (
        text_file("mkosi.conf", CONF),
        text_file("mkosi.postinst.chroot", image_script(request, STATE, COPIED_SPEC, head=MADE), 0o755),
        ExportedFile(f"{EXTRA}{COPIED}", request.carried.zipapp, 0o755),
        text_file(f"{EXTRA}{COPIED_SPEC}", image_spec(request)),
    )
