"""microk8s: the template from which its containerd.toml is written at every start, edited in place.

`${SNAPSHOTTER}` and the like stand inside strings, so the template is TOML, and they are unchanged.
"""

from __future__ import annotations

from posixpath import dirname

from gpunode.catalog.versions import first_with
from gpunode.editing.unread import refuse_unread
from gpunode.engines import drop_ins
from gpunode.engines.base import Removal, Rewrite
from gpunode.engines.containerd import provenance
from gpunode.engines.containerd.schema import version_of
from gpunode.engines.kubernetes import embedded
from gpunode.engines.provenance import Origin
from gpunode.errors import UnsupportedHost
from gpunode.model.action import Run
from gpunode.model.facts import HostFacts, RuntimeFacts
from gpunode.model.spec import RuntimeSpec
from gpunode.model.versions import at_least
from gpunode.regex import regex
from gpunode.remedy import Remedy, RepairAction

TEMPLATE = "containerd-template.toml"
# snapd refreshes by itself: it copies a revision's data to that of the next one, and prunes old ones. `current` leads
# to the one that runs.
CURRENT = "/var/snap/microk8s/current/"
_REVISION = regex(r"^/var/snap/microk8s/x?\d+/")


class Microk8s(embedded.Distribution):
    """microk8s as its snap installs it; the snap is classic, so its containerd runs programs of the host."""

    name = "microk8s"
    title = "restart of its containerd"
    default_key = "default_runtime_name"

    def rewrite(self, host: HostFacts, engine: RuntimeFacts, want: RuntimeSpec) -> Rewrite:
        file = host.file(self.lasting(f"{dirname(engine.config_path)}/{TEMPLATE}"))
        refuse_unread(file.path, file.unread)
        if file.text is None:
            raise UnsupportedHost(
                f"{file.path} is not there, from which microk8s writes its containerd.toml",
                evidence=f"{engine.config_path} is written anew at every start and cannot be edited",
                remedy=Remedy(
                    RepairAction.UPGRADE, "snap refresh microk8s restores it; or leave it out with --runtime"
                ),
            )
        version = version_of(file.path, drop_ins.load(file, "containerd"), engine.version)
        one_x = not at_least(engine.version, first_with("containerd", "merged-imports"))
        rewrite = embedded.with_handler(host, engine, want, file, version, keep_runc=one_x)
        if not rewrite.changed:
            return rewrite
        return rewrite._replace(notes=(f"microk8s writes {engine.config_path} from it at the restart", *rewrite.notes))

    def lasting(self, path: str) -> str:
        return _REVISION.sub(CURRENT, path)

    def validate(self, engine: RuntimeFacts, path: str) -> Run | None:
        return None  # a template is no configuration yet: containerd would take its placeholders for values

    def without(self, path: str, text: str, removal: Removal) -> str:
        from gpunode.engines.containerd import remove

        return remove.without(path, text, removal)

    def origins(self, host: HostFacts, engine: RuntimeFacts) -> tuple[Origin, ...]:
        return provenance.origins(host, engine)
