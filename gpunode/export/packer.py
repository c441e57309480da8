"""Files for Packer's provisioners `file` and `shell`: gpunode, the spec, and the script that runs one by the other.

Packer uploads as the user of its communicator, to /tmp; the script believes neither file before it has its SHA-256
(packer's manual, "File Provisioner" and "Shell Provisioner"; 1.6 and later read templates in HCL).
"""

from __future__ import annotations

from gpunode.export.files import ZIPAPP, ExportedFile, Request, text_file
from gpunode.export.scripts import image_script, image_spec

# Stays in the image: its first boot has gpunode and the spec.
STATE = "/var/lib/gpunode/image"
UPLOADED = f"/tmp/{ZIPAPP}"
UPLOADED_SPEC = "/tmp/gpunode-spec.yaml"
MADE = "Made by `gpunode export packer-shell`."
HEAD = f"""# {MADE} Provisioners for a build block: copy them into yours.
# The export is to be the directory gpunode next to your template.
"""
FILE = """
provisioner "file" {
  source      = "${path.root}/gpunode/%s"
  destination = "%s"
}
"""
# As root already (a container's image has no sudo), or by a sudo that asks for no password.
SHELL = """
provisioner "shell" {
  script          = "${path.root}/gpunode/provision.sh"
  execute_command = "if [ $(id -u) = 0 ]; then sh '{{ .Path }}'; else sudo -n sh '{{ .Path }}'; fi"
}
"""


def packer_shell(request: Request) -> tuple[ExportedFile, ...]:
    """gpunode.pyz, spec.yaml, provision.sh, and gpunode.hcl: provisioners for a `build` block.

    Not .pkr.hcl: Packer reads every such file of a directory as a template, and provisioners alone are none.
    Raises ValueError where request.carried is not the file that is uploaded.
    """
    if request.carried.path != UPLOADED:
        raise ValueError(f"Packer uploads gpunode to {UPLOADED}")
    return (
        ExportedFile(ZIPAPP, request.carried.zipapp, 0o755),
        text_file("spec.yaml", image_spec(request)),
        text_file("provision.sh", image_script(request, STATE, UPLOADED_SPEC, head=MADE), 0o755),
        text_file("gpunode.hcl", HEAD + FILE % (ZIPAPP, UPLOADED) + FILE % ("spec.yaml", UPLOADED_SPEC) + SHELL),
    )
