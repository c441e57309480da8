"""Where it is shown what the manual says of a verb on a real host, cluster or controller: the tests that run it there.

A command of the manual that cannot run next to its page (it changes a machine, or asks one) is one of these verbs, and
each of its options stands in one of the verb's files: in tests/lab with real hosts, in tests/cli with recorded ones.
"""

from __future__ import annotations

HOSTS = ("tests/lab/test_fleet.py", "tests/cli/test_inventory.py")
SHOWN: dict[str, tuple[str, ...]] = {
    "detect": HOSTS,
    "plan": (
        *HOSTS,
        "tests/lab/test_bad_input.py",
        "tests/cli/test_app.py",
        "tests/cli/test_options.py",
        "tests/cli/test_lock.py",
    ),
    "setup": (
        *HOSTS,
        "tests/lab/test_setup_end_to_end.py",
        "tests/lab/test_bake.py",
        "tests/lab/test_canary.py",
        "tests/lab/test_become_root.py",
        "tests/lab/test_driver_change.py",
        "tests/lab/test_kubernetes_kubelet.py",
        "tests/lab/test_mig.py",
        "tests/lab/test_lock.py",
        "tests/lab/test_bundle.py",
        "tests/lab/test_bad_input.py",
        "tests/cli/test_rollout_options.py",
        "tests/cli/test_runs.py",
        "tests/cli/test_app.py",
    ),
    "check": (
        *HOSTS,
        "tests/lab/test_smoke.py",
        "tests/lab/test_fix.py",
        "tests/lab/test_timer.py",
        "tests/cli/test_check_snapshot.py",
        "tests/cli/test_check_bundle.py",
        "tests/cli/test_check_outputs.py",
        "tests/cli/test_check_watch.py",
        "tests/cli/test_check_unit.py",
        "tests/cli/test_site_checks.py",
        "tests/cli/test_check_rules.py",
        "tests/cli/test_app.py",
    ),
    "undo": ("tests/lab/test_undo.py", "tests/lab/test_undo_containers.py", "tests/cli/test_undo.py"),
    "lock": (*HOSTS, "tests/cli/test_lock.py"),
    "bundle create": ("tests/lab/test_bundle.py", "tests/cli/test_bundle.py"),
    "bundle verify": ("tests/lab/test_bundle.py", "tests/cli/test_bundle.py"),
    "bundle diff": ("tests/cli/test_bundle.py",),
    "export cloud-init": ("tests/lab/test_export_cloud_init.py", "tests/cli/test_export.py"),
    "export ansible": ("tests/lab/test_export_ansible.py", "tests/cli/test_export.py"),
    "export daemonset": ("tests/lab/test_export_daemonset.py", "tests/cli/test_export.py"),
    "export nodewright": ("tests/lab/test_export_nodewright.py", "tests/cli/test_export.py"),
    "export mkosi": ("tests/lab/test_export_mkosi.py", "tests/cli/test_export.py"),
    "export script": ("tests/lab/test_export_script.py", "tests/cli/test_export.py"),
    "export packer-shell": ("tests/lab/test_export_packer.py", "tests/cli/test_export.py"),
    "self check": ("tests/cli/test_self_check.py",),
    "self zipapp": ("tests/lab/test_zipapp.py", "tests/release/test_zipapp.py"),
    "runs": ("tests/cli/test_runs.py",),
    "runs show": ("tests/cli/test_runs.py",),
    "runs merge": ("tests/cli/test_runs.py",),
    "runtime show": ("tests/lab/test_typed_containerd.py", "tests/cli/test_runtime.py"),
    "runtime configure": ("tests/lab/test_configure.py", "tests/cli/test_runtime.py"),
    "k8s labels": (
        "tests/lab/test_kubernetes_labels.py",
        "tests/lab/test_kubernetes_client.py",
        "tests/cli/test_k8s_labels.py",
    ),
    "k8s device-plugin": (
        "tests/lab/test_kubernetes_guide.py",
        "tests/lab/test_kubernetes_client.py",
        "tests/cli/test_k8s_device_plugin.py",
    ),
    "k8s dra": ("tests/cli/test_k8s_dra.py", "tests/cli/test_k8s_device_plugin.py", "tests/lab/fleet.py"),
    "k8s pod": ("tests/lab/test_kubernetes_guide.py", "tests/lab/test_kubernetes_pod.py", "tests/cli/test_k8s_pod.py"),
    "k8s verify": (
        "tests/lab/test_kubernetes_pod.py",
        "tests/lab/test_kubernetes_client.py",
        "tests/cli/test_k8s_verify.py",
    ),
    "k8s preflight": ("tests/cli/test_k8s_preflight.py",),
}
