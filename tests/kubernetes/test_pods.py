"""Test pods: every server takes them, old forms parse, and the rules that users break are refused with the reason."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml

from gpunode.catalog.test_images import image_for, vector_add_images
from gpunode.errors import UnsupportedHost, UsageError
from gpunode.kubernetes import pod_rules as rules
from gpunode.kubernetes.documents import documents
from gpunode.kubernetes.dra_pod import dra_objects
from gpunode.kubernetes.driver_libraries import driver_libraries
from gpunode.kubernetes.pods import AFFINITY_ANNOTATION, Library, PodRequest, vector_add_pod
from gpunode.kubernetes.release import kubernetes_release
from gpunode.model.facts import DriverFacts
from gpunode.model.versions import Release
from tests.kubernetes.schemas import RELEASES, faults
from tests.planner import builders

IMAGE = "example/vector-add:1"
H100 = "NVIDIA H100 80GB HBM3"


def read(request: PodRequest) -> Any:
    (pod,) = yaml.safe_load_all(documents([vector_add_pod(request)]))
    return pod


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize(
    "more",
    [{}, {"gpus": 8}, {"resource": "nvidia.com/mig-1g.10gb"}, {"product": H100}, {"runtime_class": "nvidia"},
     {"hostname": "gpu07"},
     {"visible_devices": "3"}, {"visible_devices": "none"}, {"visible_devices": "GPU-1,GPU-2", "product": H100}],
    ids=str,
)  # fmt: skip
def test_a_server_takes_every_pod(release: str, more: dict[str, Any]) -> None:
    assert faults(read(PodRequest(IMAGE, kubernetes=kubernetes_release(release), **more)), release) == []


@pytest.mark.parametrize("release", [one for one in RELEASES if int(one[2:]) >= 32])
@pytest.mark.parametrize("more", [{}, {"gpus": 2}, {"product": H100}, {"hostname": "gpu07"}], ids=str)
def test_a_server_takes_what_dra_needs(release: str, more: dict[str, Any]) -> None:
    objects = dra_objects(PodRequest(IMAGE, kubernetes=kubernetes_release(release), **more))
    for one in yaml.safe_load_all(documents(objects)):
        assert faults(one, release) == []


@pytest.mark.parametrize(
    ("release", "version"), [((1, 32), "v1beta1"), ((1, 33), "v1beta2"), ((1, 34), "v1"), ((1, 40), "v1"), (None, "v1")]
)
def test_dra_has_the_version_of_its_release(release: Release | None, version: str) -> None:
    device_class, template, pod = dra_objects(PodRequest(IMAGE, gpus=2, kubernetes=release, product=H100))
    assert device_class["apiVersion"] == template["apiVersion"] == f"resource.k8s.io/{version}"
    (request,) = template["spec"]["spec"]["devices"]["requests"]  # type: ignore[index]
    wanted = request if version == "v1beta1" else request["exactly"]
    assert (wanted["deviceClassName"], wanted["count"]) == (device_class["metadata"]["name"], 2)  # type: ignore[index]
    assert f'productName == "{H100}"' in str(device_class)
    assert pod["spec"]["resourceClaims"][0]["resourceClaimTemplateName"] == template["metadata"]["name"]  # type: ignore[index]


def test_gpus_stand_in_limits_alone() -> None:
    (container,) = read(PodRequest(IMAGE, gpus=2))["spec"]["containers"]
    assert container["resources"] == {"limits": {"nvidia.com/gpu": 2}}


def test_a_number_for_the_engine_is_text() -> None:
    (container,) = read(PodRequest(IMAGE, visible_devices="3"))["spec"]["containers"]
    assert container["env"] == [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "3"}]
    assert "resources" not in container


@pytest.mark.parametrize(("value", "checks"), [("all", False), ("none", True), ("void", True), ("0", False)])
def test_without_gpus_their_absence_is_looked_at(value: str, checks: bool) -> None:
    assert ("command" in read(PodRequest(IMAGE, visible_devices=value))["spec"]["containers"][0]) is checks


# --- affinity ---

TERM = {"key": "nvidia.com/gpu.product", "operator": "In", "values": ["NVIDIA-H100-80GB-HBM3"]}


def terms(affinity: Any) -> Any:
    node = affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    return [one["matchExpressions"] for one in node["nodeSelectorTerms"]]


@pytest.mark.parametrize("product", [H100, "NVIDIA-H100-80GB-HBM3"])
def test_affinity_by_model_is_a_field_today(product: str) -> None:
    pod = read(PodRequest(IMAGE, product=product))
    assert terms(pod["spec"]["affinity"]) == [[TERM]]
    assert "annotations" not in pod["metadata"]


@pytest.mark.parametrize(("release", "annotated"), [((1, 5), True), ((1, 6), False), ((1, 10), False)])
def test_affinity_by_model_was_an_annotation_before_1_6(release: Release, annotated: bool) -> None:
    old = PodRequest(
        IMAGE, product="Tesla P100-PCIE-16GB", kubernetes=release, libraries=[Library("/usr/lib/nvidia-375")]
    )
    pod = read(old)
    written = pod["metadata"].get("annotations", {}).get(AFFINITY_ANNOTATION)
    assert (written is not None) is annotated
    found = json.loads(written) if annotated else pod["spec"]["affinity"]
    term = {"key": "alpha.kubernetes.io/nvidia-gpu-name", "operator": "In", "values": ["Tesla-P100-PCIE-16GB"]}
    assert terms(found) == [[term]]
    assert ("tolerations" in pod["spec"]) is not annotated


# --- old clusters ---


def test_an_old_pod_mounts_the_drivers_directory() -> None:
    pod = read(PodRequest(IMAGE, gpus=2, kubernetes=(1, 7), libraries=[Library("/usr/lib/nvidia-375")]))
    (container,) = pod["spec"]["containers"]
    assert container["resources"] == {"limits": {"alpha.kubernetes.io/nvidia-gpu": 2}}
    assert container["volumeMounts"] == [
        {"name": "library-0", "mountPath": "/usr/local/nvidia/lib64", "readOnly": True}
    ]
    assert pod["spec"]["volumes"] == [{"name": "library-0", "hostPath": {"path": "/usr/lib/nvidia-375"}}]
    assert faults(pod, RELEASES[0]) == []  # the shape has not changed since


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        (("/usr/lib/nvidia-375/libcuda.so.375.66", "/usr/lib32/nvidia-375/libcuda.so.375.66"), "/usr/lib/nvidia-375"),
        (("/usr/lib32/nvidia-384/libcuda.so.1", "/usr/lib/nvidia-384/libcuda.so.1"), "/usr/lib/nvidia-384"),
        (("/usr/lib64/nvidia/libcuda.so.1",), "/usr/lib64/nvidia"),
        (("/usr/lib/x86_64-linux-gnu/nvidia/current/libcuda.so.1",), "/usr/lib/x86_64-linux-gnu/nvidia/current"),
        (("/usr/lib64/libcuda.so.384.81",), "/usr/lib64/libcuda.so.384.81"),
        (("/usr/lib/libcuda.so.1", "/usr/lib64/libcuda.so.1"), "/usr/lib64/libcuda.so.1"),
        (("/usr/lib/libcuda.so.440.33",), "/usr/lib/libcuda.so.440.33"),
    ],
)
def test_paths_come_from_the_host(paths: tuple[str, ...], expected: str) -> None:
    (found,) = driver_libraries(builders.host(driver=DriverFacts(libraries={"libcuda.so.1": paths})))
    assert found == Library(expected, None if "nvidia" in expected else "libcuda.so.1")


@pytest.mark.parametrize("paths", [(), ("/usr/../etc/libcuda.so.1",), ("relative/libcuda.so.1",), ("/a b/\x1b[2J",)])
def test_a_host_without_a_path_that_can_be_written_is_refused(paths: tuple[str, ...]) -> None:
    with pytest.raises(UnsupportedHost, match="not known"):
        driver_libraries(builders.host(driver=DriverFacts(libraries={"libcuda.so.1": paths})))


# --- what is refused ---


@pytest.mark.parametrize("text", ["1", " 8 ", "999"])
def test_whole_numbers_are_taken(text: str) -> None:
    assert rules.gpu_count(text) == int(text)


@pytest.mark.parametrize("text", ["0.5", ".5", "500m", "1.0"])
def test_a_part_of_a_gpu_is_refused_with_the_ways_to_share_one(text: str) -> None:
    with pytest.raises(UsageError, match="whole GPUs") as refused:
        rules.gpu_count(text)
    assert "must be an integer" in refused.value.evidence
    assert "time slicing" in str(refused.value.remedy)


@pytest.mark.parametrize("text", ["", "0", "-1", "1000", "two", "٣", "\x1b[2J", "1" * 9999])
def test_what_is_no_number_of_gpus_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="not a whole number"):
        rules.gpu_count(text)


@pytest.mark.parametrize(
    ("mode", "release", "is_mode"),
    [
        (None, None, "device-plugin"),
        (None, (1, 7), "alpha"),
        (None, (1, 8), "device-plugin"),
        ("alpha", (1, 10), "alpha"),
        ("alpha", (1, 11), None),
        ("alpha", None, None),
        ("device-plugin", (1, 7), None),
        ("dra", (1, 31), None),
        ("dra", (1, 32), "dra"),
        ("dra", None, "dra"),
        ("drp", None, None),
    ],
)
def test_which_way_a_release_has(mode: str | None, release: Release | None, is_mode: str | None) -> None:
    if is_mode:
        assert rules.pod_mode(mode, release) == is_mode
    else:
        with pytest.raises(UsageError):
            rules.pod_mode(mode, release)


def test_the_old_resource_is_refused_with_what_would_happen() -> None:
    with pytest.raises(UsageError) as refused:
        rules.gpu_resource("alpha.kubernetes.io/nvidia-gpu")
    assert "waits for ever" in refused.value.evidence


def test_one_gpu_before_1_6() -> None:
    assert rules.alpha_count(2, (1, 6)) == 2
    assert rules.alpha_count(1, (1, 5)) == 1
    with pytest.raises(UsageError, match="one GPU at most"):
        rules.alpha_count(2, (1, 5))


@pytest.mark.parametrize("text", ["all", "none", "void", "3", "0,1", "GPU-8a3e", "MIG-GPU-8a3e/1/0", "0:1"])
def test_values_for_the_engine(text: str) -> None:
    assert rules.visible_devices(text) == text


@pytest.mark.parametrize("text", ["", "ALL", "0;1", "-1", "all,0", "0,", "x", "$(id)", "0\n1", "0," * 3000 + "0"])
def test_values_that_no_engine_reads(text: str) -> None:
    with pytest.raises(UsageError):
        rules.visible_devices(text)


@pytest.mark.parametrize("text", ["", " x", 'x"; drop', "x\ny", "x" * 64, "\x1b[2J"])
def test_names_that_no_gpu_has(text: str) -> None:
    for mode in rules.POD_MODES:
        with pytest.raises(UsageError):
            rules.product_name(text, mode)


def test_dra_takes_no_labels_value() -> None:
    assert rules.product_name("NVIDIA-L4", "device-plugin") == "NVIDIA-L4"
    with pytest.raises(UsageError, match="label's value"):
        rules.product_name("NVIDIA-L4", "dra")


@pytest.mark.parametrize(
    ("branch", "cuda"),
    [(None, "12.5"), (610, "12.5"), (525, "12.5"), (470, "11.7"), (450, "11.7"), (418, "8.0"), (340, "8.0")],
)
def test_an_old_driver_has_an_image_that_it_runs(branch: int | None, cuda: str) -> None:
    assert image_for(branch).cuda == cuda


def test_every_image_is_pinned_by_a_tag() -> None:
    for one in vector_add_images():
        assert re.fullmatch(r"[a-z0-9.]+(/[a-z0-9-]+)+:(?!latest)[\w.-]+", one.image)
