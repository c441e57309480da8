"""A package of NodeWright (formerly Skyhook), NVIDIA's operator for a cluster's hosts, and the object that asks for it.

The operator copies the package onto each node that the object selects, as many at once as its budget allows, and its
agent runs the steps of config.json there (NVIDIA/skyhook, agent/skyhook-agent/src/skyhook_agent/schemas/v1 and
operator/api/v1alpha1/skyhook_types.go; NVIDIA/nodewright, chart/templates/nodewright-crd.yaml).
"""

from __future__ import annotations

import json
import re

from gpunode.export.daemonset import SELECTED
from gpunode.export.files import ZIPAPP, ExportedFile, Request, text_file
from gpunode.export.scripts import host_script, image_spec, nodewright_script
from gpunode.kubernetes.documents import Object, documents

NAME = "gpunode"
STATE = "/var/lib/gpunode/nodewright"
UNIT = "gpunode-nodewright"
PACKAGE = "skyhook-package"
MADE = "Made by `gpunode export nodewright`."
# The kind's name before the operator was renamed, and its name since; a cluster has the definition of what it knows.
KINDS = {
    "nodewright": ("nodewright.nvidia.com/v1alpha1", "NodeWright"),
    "skyhook": ("skyhook.nvidia.com/v1alpha1", "Skyhook"),
}
# Its init container copies the package with sh and cp.
DOCKERFILE = f"""# {MADE}
# An image with sh and cp: docker build --build-arg BASE=busybox:1.37 ...
ARG BASE
FROM ${{BASE}}
COPY {PACKAGE} /{PACKAGE}
"""


def nodewright(request: Request, image: str, kind: str) -> tuple[ExportedFile, ...]:
    """Dockerfile, the package below skyhook-package, and nodewright.yaml. `image`: its name without a tag; `kind`: of
    KINDS. Raises ValueError where request.carried says that gpunode is elsewhere.
    """
    if not request.carried.is_inside:
        raise ValueError("the package holds gpunode")
    version = package_version(request)
    head = f"{MADE}\nThe image is {image}:{version}."
    steps = f"{PACKAGE}/skyhook_dir"
    return (
        text_file("Dockerfile", DOCKERFILE),
        text_file(f"{PACKAGE}/config.json", json.dumps(_config(version), indent=2) + "\n"),
        ExportedFile(f"{steps}/{ZIPAPP}", request.carried.zipapp),
        text_file(f"{steps}/spec.yaml", image_spec(request)),
        text_file(f"{steps}/host.sh", host_script(request, STATE, "host", head=MADE, unit=UNIT)),
        text_file(f"{steps}/gpunode.sh", nodewright_script(MADE), 0o755),
        text_file("nodewright.yaml", documents([_object(image, version, kind)], head)),
    )


def package_version(request: Request) -> str:
    """A semantic version, which is the image's tag as well: another spec, or another gpunode, is another version."""
    numbers = re.match(r"\d+\.\d+\.\d+|\d+\.\d+|\d+", request.version)
    release = (numbers[0] if numbers else "0") + ".0.0"
    return f"{'.'.join(release.split('.')[:3])}-k{request.key}"


def _config(version: str) -> Object:
    """What the agent runs in which stage. A newer version is upgraded to, an older one is applied: both are a setup."""
    setup, check = [_step("setup", 0)], [_step("check", 0)]
    modes = {"apply": setup, "apply-check": check, "upgrade": setup, "upgrade-check": check}
    return {
        "schema_version": "v1",
        "package_name": NAME,
        "package_version": version,
        "expected_config_files": [],
        "modes": modes,
    }


def _step(word: str, *codes: int) -> Object:
    return {
        "name": word,
        "path": "gpunode.sh",
        "arguments": [word],
        "returncodes": list(codes),
        "on_host": True,
        "env": {},
        "idempotence": True,  # the step's own: it is run each time
        "upgrade_step": False,
    }


def _object(image: str, version: str, kind: str) -> Object:
    api, name = KINDS[kind]
    return {
        "apiVersion": api,
        "kind": name,
        "metadata": {"name": NAME, "labels": {"app.kubernetes.io/managed-by": "gpunode"}},
        "spec": {
            "nodeSelectors": {"matchLabels": dict([SELECTED])},
            "interruptionBudget": {"count": 1},
            "packages": {NAME: {"version": version, "image": image}},
        },
    }
