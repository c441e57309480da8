"""The plugin's options as NVIDIA's own source has them, written down apart from the catalog: what is printed is held
against this, so that a name which is wrong in the catalog is not right by being wrong twice.

github.com/NVIDIA/k8s-device-plugin at every tag from v0.14.4 to v0.20.0 (2026-11-25): Flags of cmd/nvidia-device-plugin
and cmd/gpu-feature-discovery, the JSON names of api/config/v1, and what the chart's templates read of its values.
"""

from __future__ import annotations

from typing import NamedTuple

Scalar = str | bool | list[str] | list[int]


class Wanted(NamedTuple):
    flag: str
    env: str
    config: str  # "": the config file has no key
    helm: str  # "": the chart has no value
    since: str
    typed: str
    yaml: Scalar  # as the config file has it
    chart: Scalar  # as the chart has it

    @property
    def numbers(self) -> tuple[int, ...]:
        return numbers(self.since)


def numbers(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.removeprefix("v").split(".")))


# flag, variable, key, value of the chart, first release, what is typed
_PLUGIN = """
mig-strategy|MIG_STRATEGY|flags.migStrategy|migStrategy|0.14.4|none
mig-strategy|MIG_STRATEGY|flags.migStrategy|migStrategy|0.14.4|single
mig-strategy|MIG_STRATEGY|flags.migStrategy|migStrategy|0.14.4|mixed
fail-on-init-error|FAIL_ON_INIT_ERROR|flags.failOnInitError|failOnInitError|0.14.4|false
fail-on-init-error|FAIL_ON_INIT_ERROR|flags.failOnInitError|failOnInitError|0.14.4|true
driver-root|NVIDIA_DRIVER_ROOT|flags.nvidiaDriverRoot|nvidiaDriverRoot|0.14.4|/run/nvidia/driver
dev-root|NVIDIA_DEV_ROOT|flags.nvidiaDevRoot|nvidiaDevRoot|0.16.0|/run/nvidia/driver
pass-device-specs|PASS_DEVICE_SPECS|flags.plugin.passDeviceSpecs|compatWithCPUManager|0.14.4|true
pass-device-specs|PASS_DEVICE_SPECS|flags.plugin.passDeviceSpecs|compatWithCPUManager|0.14.4|false
device-list-strategy|DEVICE_LIST_STRATEGY|flags.plugin.deviceListStrategy|deviceListStrategy|0.14.4|envvar
device-list-strategy|DEVICE_LIST_STRATEGY|flags.plugin.deviceListStrategy|deviceListStrategy|0.14.4|volume-mounts
device-list-strategy|DEVICE_LIST_STRATEGY|flags.plugin.deviceListStrategy|deviceListStrategy|0.14.4|cdi-annotations
device-list-strategy|DEVICE_LIST_STRATEGY|flags.plugin.deviceListStrategy|deviceListStrategy|0.15.0|cdi-cri
device-list-strategy|DEVICE_LIST_STRATEGY|flags.plugin.deviceListStrategy|deviceListStrategy|0.15.0|envvar,cdi-cri
device-id-strategy|DEVICE_ID_STRATEGY|flags.plugin.deviceIDStrategy|deviceIDStrategy|0.14.4|uuid
device-id-strategy|DEVICE_ID_STRATEGY|flags.plugin.deviceIDStrategy|deviceIDStrategy|0.14.4|index
gds-enabled|GDS_ENABLED|flags.gdsEnabled|gdsEnabled|0.14.4|true
mofed-enabled|MOFED_ENABLED|flags.mofedEnabled|mofedEnabled|0.14.4|false
gdrcopy-enabled|GDRCOPY_ENABLED|flags.gdrcopyEnabled|gdrcopyEnabled|0.18.0|true
cdi-annotation-prefix|CDI_ANNOTATION_PREFIX|flags.plugin.cdiAnnotationPrefix||0.14.4|cdi.example.com/
nvidia-cdi-hook-path|NVIDIA_CDI_HOOK_PATH|flags.plugin.nvidiaCTKPath|cdi.nvidiaHookPath|0.14.4|/opt/nvidia-ctk
driver-root-ctr-path|DRIVER_ROOT_CTR_PATH|flags.plugin.containerDriverRoot||0.14.4|/driver
mps-root|MPS_ROOT|flags.mpsRoot|mps.root|0.15.0|/run/mps
device-discovery-strategy|DEVICE_DISCOVERY_STRATEGY|flags.deviceDiscoveryStrategy|deviceDiscoveryStrategy|0.16.0|nvml
kubelet-socket|KUBELET_SOCKET|||0.17.0|/run/kubelet.sock
imex-channel-ids|IMEX_CHANNEL_IDS|imex.channelIDs||0.17.0|0
imex-required|IMEX_REQUIRED|imex.required||0.17.0|true
cdi-feature-flags|CDI_FEATURE_FLAGS||cdi.featureFlags|0.18.1|one,two
shared-devices-allocation-policy|SHARED_DEVICES_ALLOCATION_POLICY|flags.plugin.sharedDevicesAllocationPolicy||0.20.0|packed
cdi-disable-hooks|CDI_DISABLE_HOOKS|||0.20.0|all
"""
# Of gpu-feature-discovery, which this plugin's pod does not start: the config file and the chart alone say them.
_GFD = """
use-node-feature-api|GFD_USE_NODE_FEATURE_API|flags.useNodeFeatureAPI||0.15.0|true
oneshot|GFD_ONESHOT|flags.gfd.oneshot||0.14.4|true
no-timestamp|GFD_NO_TIMESTAMP|flags.gfd.noTimestamp|gfd.noTimestamp|0.14.4|true
sleep-interval|GFD_SLEEP_INTERVAL|flags.gfd.sleepInterval|gfd.sleepInterval|0.14.4|1m30s
sleep-interval|GFD_SLEEP_INTERVAL|flags.gfd.sleepInterval|gfd.sleepInterval|0.19.0|infinite
output-file|GFD_OUTPUT_FILE|flags.gfd.outputFile||0.14.4|/run/gfd
machine-type-file|GFD_MACHINE_TYPE_FILE|flags.gfd.machineTypeFile||0.14.4|/sys/name
"""
# Its names before a release, and from when the chart has a value.
OLD = {
    "driver-root": ("0.16.0", "nvidia-driver-root", "NVIDIA_DRIVER_ROOT"),
    "nvidia-cdi-hook-path": ("0.16.0", "nvidia-ctk-path", "NVIDIA_CTK_PATH"),
    "driver-root-ctr-path": ("0.16.0", "container-driver-root", "CONTAINER_DRIVER_ROOT"),
}
CHART_SINCE = {"nvidia-cdi-hook-path": "0.16.0", "no-timestamp": "0.15.0", "sleep-interval": "0.15.0"}
# By which names a person may call an option, beside those above.
ALIASES = {
    "nvidia-dev-root": "dev-root",
    "USE_NODE_FEATURE_API": "use-node-feature-api",
    "GFD_MIG_STRATEGY": "mig-strategy",
    "GFD_FAIL_ON_INIT_ERROR": "fail-on-init-error",
}
# True by itself in these releases, and false again from v0.19.3 on.
TRAPPED = {"v0.19.0", "v0.19.1", "v0.19.2"}
TRAPS = ("gds-enabled", "mofed-enabled", "gdrcopy-enabled")
_LISTS = ("device-list-strategy",)


def _wanted(line: str) -> Wanted:
    flag, env, config, helm, since, typed = (word.strip() for word in line.split("|"))
    scalar: Scalar = typed == "true" if typed in ("true", "false") else typed
    yaml = [int(typed)] if flag == "imex-channel-ids" else typed.split(",") if flag in _LISTS else scalar
    return Wanted(flag, env, config, helm, since, typed, yaml, scalar)


PLUGIN = tuple(map(_wanted, _PLUGIN.strip().splitlines()))
GFD = tuple(map(_wanted, _GFD.strip().splitlines()))
