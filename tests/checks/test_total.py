"""No check raises, whatever part of the facts is missing or odd: a bug in one must not lose the others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from gpunode.catalog.load import load_catalog
from gpunode.checks import all_checks, run_all
from gpunode.checks.uniform import Compared, compared
from gpunode.model.connection import ClockSkew, Connection
from gpunode.model.dkms import DkmsLine
from gpunode.model.facts import (
    CliInfo,
    DeviceNode,
    DriverFacts,
    FailedStep,
    HostFacts,
    JournalFacts,
    KernelFacts,
    KernelTree,
    KubernetesFacts,
    MpsProcess,
    OsFacts,
    PciDevice,
    RuntimeFacts,
    SecurityFacts,
    ServiceFacts,
    StuckProcess,
    ToolkitFacts,
)
from gpunode.model.files import FileFacts
from gpunode.model.kubernetes import (
    DevicePlugins,
    Gate,
    KubeletSettings,
    NodeFacts,
    PluginConfig,
    PluginPod,
    SharedResource,
)
from gpunode.model.packages import PackageFacts, PackageVersion
from gpunode.model.smi import SmiFacts
from gpunode.model.spec import Expectation, RuntimeSpec, Spec
from gpunode.model.system import CudaToolkit, ModprobeHelper, NamedProxy, Outbound, SystemFacts
from tests.checks import hosts as h

WORDS = st.sampled_from(
    ("", "nvidia", "runc", "595.91.07", "1.17.8", "0666", "²", "\udcff", "[", '{"runtimes": 1}', "= =")
)
TEXTS = WORDS | st.sampled_from(tuple(f.text for f in h.READY.files.values() if f.text)) | st.text(max_size=40)
NUMBERS = st.none() | st.integers(-1, 300)
SECONDS = st.floats(-1e18, 1e18)
PATHS = st.sampled_from(tuple(h.READY.files))
DEVICES = st.sampled_from(("2330", "22a3", "1af1", "102d", "1db6", "2901", "ffff", "0000", "06c0"))


def _of(kind: type, **given_: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.builds(kind, **given_)


FILES = _of(FileFacts, path=PATHS, text=st.none() | TEXTS)
BY_PATH: st.SearchStrategy[Mapping[str, object]] = st.dictionaries(PATHS, FILES, max_size=4)
LINES = st.lists(TEXTS, max_size=2).map(tuple)
DRIVERS = _of(
    DriverFacts,
    loaded=st.none() | WORDS,
    installed=st.none() | WORDS,
    params=st.dictionaries(st.just("DeviceFileMode"), TEXTS),
    gpus=LINES,
    smi=st.none() | _of(SmiFacts, code=st.integers(0, 127), message=TEXTS, gpus=st.just(())),
    dkms=st.lists(_of(DkmsLine, module=WORDS, version=WORDS, kernel=st.none() | WORDS, state=WORDS), max_size=2).map(
        tuple
    ),
    libraries=st.dictionaries(st.sampled_from(("libcuda.so.1", "libnvidia-ml.so.1")), LINES),
    kernel_log=LINES,
    busy=LINES,
    stuck=st.none()
    | st.lists(
        _of(
            StuckProcess,
            pid=st.integers(-1, 9),
            command=TEXTS,
            state=st.sampled_from("DZ"),
            seconds=st.integers(-1, 90),
            parent=NUMBERS,
        ),
        max_size=3,
    ).map(tuple),
    mps=st.none()
    | st.lists(_of(MpsProcess, pid=st.integers(-1, 9), uid=NUMBERS, container=st.booleans()), max_size=2).map(tuple),
    modprobe=st.none() | st.just("absent") | _of(ModprobeHelper, mode=st.integers(0, 0o7777), uid=st.integers(0, 9)),
)
PROXIES = _of(
    NamedProxy, host=WORDS | st.just("DIRECT"), path=st.sampled_from(("/etc/environment", "/etc/apt/x", "", "/run/x"))
)
SYSTEMS = _of(
    SystemFacts,
    thp=st.none() | WORDS,
    governors=st.none() | st.dictionaries(WORDS, st.integers(1, 9), max_size=2),
    cuda=st.none() | st.just((CudaToolkit(""),)),
    outbound=st.none()
    | _of(
        Outbound,
        proxies=st.lists(PROXIES, max_size=3).map(tuple),
        indirect=LINES,
        unseen=LINES,
        resolv_conf=WORDS | st.just("present"),
    ),
)
ENGINES = _of(
    RuntimeFacts,
    name=st.sampled_from(("docker", "containerd")),
    version=st.none() | WORDS,
    config_path=PATHS,
    unit=WORDS,
    socket=WORDS,
    active=st.booleans(),
    effective_default=st.none() | WORDS,
    handlers=LINES,
    systemd_cgroup=st.dictionaries(WORDS, st.booleans(), max_size=2),
    imports=st.lists(PATHS, max_size=2).map(tuple),
    merged_config=st.none() | TEXTS,
    cri_error=st.none() | WORDS,
    flags=LINES,
)
BY_WORD = st.dictionaries(WORDS | st.just("nvidia.com/gpu"), TEXTS, max_size=3)
SHARED = st.lists(_of(SharedResource, name=WORDS, replicas=NUMBERS, renamed=st.booleans()), max_size=2).map(tuple)
CONFIGS = _of(
    PluginConfig,
    name=WORDS | st.just("available-configs/a"),
    version=st.none() | WORDS,
    mig_strategy=st.none() | WORDS | st.just("single"),
    time_slicing=SHARED,
    mps=SHARED,
    unread=st.none() | WORDS,
    bare=LINES,
    odd_flags=LINES,
)
PLUGINS = _of(
    DevicePlugins,
    directory=WORDS,
    kubelet_socket=st.booleans(),
    sockets=st.dictionaries(WORDS, st.booleans(), max_size=2),
    registered=st.none() | st.dictionaries(WORDS | st.just("nvidia.com/gpu"), LINES, max_size=2),
    pods=st.none() | st.just((PluginPod("a_b", "nvidia-device-plugin-ctr", None),)) | st.just(()),
    processes=st.sampled_from(((), (1,), (1, 2))),
    image=st.none() | TEXTS,
    options=st.none() | BY_WORD,
    said=st.none() | WORDS,
    dra=st.sampled_from((frozenset(), frozenset({"gpu.nvidia.com"}))),
    configs=st.none() | st.lists(CONFIGS, max_size=2).map(tuple),
    waits=st.dictionaries(WORDS, st.booleans(), max_size=2),
    allocated=NUMBERS,
    ghosts=LINES,
    kept=st.booleans(),
)
KUBERNETES = _of(
    KubernetesFacts,
    kubelet=st.booleans(),
    kubelet_cgroup_driver=st.none() | WORDS,
    distribution=st.none() | WORDS,
    running=st.booleans(),
    version=st.none() | WORDS,
    settings=st.none()
    | _of(
        KubeletSettings,
        gates=st.dictionaries(WORDS | st.just("DevicePlugins"), _of(Gate, on=st.booleans(), where=WORDS), max_size=2),
        node_labels=LINES,
        cpu_manager=WORDS | st.just("static"),
        topology_manager=WORDS,
        unread=st.none() | WORDS,
    ),
    device_plugins=st.none() | PLUGINS,
    node=st.none()
    | _of(
        NodeFacts,
        conditions=BY_WORD,
        capacity=BY_WORD,
        allocatable=BY_WORD,
        labels=BY_WORD,
        taints=LINES,
        images=st.none() | LINES | st.just(("x/gpu-operator:v" + "9" * 5000, "a/gpu-operator:v24.6.1-ubi8")),
    ),
)
HOSTS = st.builds(
    HostFacts,
    target=WORDS,
    hostname=WORDS,
    os=st.just(OsFacts("debian", "12")),
    kernel=_of(
        KernelFacts,
        release=WORDS,
        trees=st.lists(
            _of(
                KernelTree,
                release=WORDS,
                bootable=st.booleans(),
                headers=st.booleans(),
                nvidia_module=st.none() | WORDS,
            ),
            max_size=2,
        ).map(tuple),
        next_boot=st.none() | WORDS,
        cmdline=TEXTS,
    ),
    root=st.booleans(),
    pci=st.lists(
        _of(
            PciDevice,
            address=WORDS,
            vendor=st.just("10de"),
            device=DEVICES,
            class_code=st.sampled_from(("0300", "0302", "0680")),
            link_width=NUMBERS,
            link_width_max=NUMBERS,
            numa_node=NUMBERS,
            bar1_bytes=NUMBERS,
            driver=st.none() | WORDS,
        ),
        max_size=3,
    ).map(tuple),
    driver=DRIVERS,
    devices=st.lists(_of(DeviceNode, path=st.just("/dev/nvidia0") | WORDS, mode=st.integers(0, 511)), max_size=2).map(
        tuple
    ),
    uvm_major=NUMBERS,
    user_namespace=st.none() | st.booleans(),
    journal=st.just(JournalFacts())
    | _of(JournalFacts, failed=_of(FailedStep, step=TEXTS, run=TEXTS, error=TEXTS | st.just("Size mismatch"))),
    toolkit=_of(
        ToolkitFacts,
        version=st.none() | WORDS,
        hook_refused=st.none() | WORDS,
        runtime_path=st.none() | WORDS,
        cdi_specs=st.lists(PATHS).map(tuple),
        cli=st.none() | _of(CliInfo, code=st.integers(0, 127), driver_version=st.none() | WORDS, message=TEXTS),
    ),
    runtimes=st.lists(ENGINES, max_size=2).map(tuple),
    packages=_of(
        PackageFacts,
        manager=st.sampled_from((None, "apt", "dnf")),
        installed=st.dictionaries(
            st.sampled_from(tuple(h.PACKAGES)), _of(PackageVersion, version=WORDS, status=WORDS), max_size=3
        ),
    ),
    security=_of(SecurityFacts, secure_boot=st.none() | st.booleans()),
    services=st.dictionaries(WORDS, _of(ServiceFacts, enabled=WORDS), max_size=1),
    kubernetes=KUBERNETES,
    connection=st.none()
    | st.builds(
        Connection,
        WORDS,
        WORDS,
        WORDS,
        st.booleans(),
        st.booleans(),
        st.none() | st.builds(ClockSkew, SECONDS, SECONDS),
    ),
    system=st.none() | SYSTEMS,
    files=BY_PATH,
    unread=st.dictionaries(st.sampled_from(("smi", "pci", "ldconfig")), WORDS, max_size=1),
)
SPECS = st.none() | st.just(Spec(expect=Expectation(gpus=2), runtime=RuntimeSpec(cdi=True), runtimes=("docker",)))


@settings(max_examples=150, deadline=None)
@given(host=HOSTS, spec=SPECS, healthy=st.booleans())
def test_every_check_answers_for_any_facts(host: HostFacts, spec: Spec | None, healthy: bool) -> None:
    mixed = replace(host, pci=h.READY.pci, driver=h.READY.driver) if healthy else host
    report = run_all(mixed, spec, load_catalog())
    assert set(report.results) == {doc.id for doc in all_checks()}
    assert len(compared([Compared.of(one) for one in (mixed, h.READY, host, mixed)])) == 4
