"""Eight times the text costs every parser and rewriter at most 24 times the processor; linear.py has the rest."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from gpunode.apply.journal.entries import parse_journal as parse_whole_journal
from gpunode.apply.reasons import error_summary, tail
from gpunode.apply.script import advice_on
from gpunode.checks.words import active_lines
from gpunode.editing import json_text, toml_text
from gpunode.editing.diff import unified
from gpunode.editing.toml_scan import statements
from gpunode.engines import toolkit_config
from gpunode.engines.docker.engine import Docker
from gpunode.engines.kubernetes import k3s
from gpunode.engines.kubernetes.kubelet_told import told
from gpunode.engines.toolkit_config import setting
from gpunode.facts.archives import parse_archives
from gpunode.facts.devices import parse_devices, parse_uvm_major
from gpunode.facts.driver import parse_dkms, parse_ldconfig, parse_modinfo, parse_params
from gpunode.facts.journal import parse_journal
from gpunode.facts.kernel import parse_blacklist, parse_compiler, parse_next_boot, parse_trees, version_key
from gpunode.facts.kernel_log import parse_kernel_log, parse_kernel_state
from gpunode.facts.nvlink import parse_nvlinks, parse_peers
from gpunode.facts.packages import (
    parse_key_files,
    parse_keyrings,
    parse_lock,
)
from gpunode.facts.pci import parse_lspci, parse_pci
from gpunode.facts.release import key_values, parse_os
from gpunode.facts.runtimes import _from_dump, _plugin_error, _version
from gpunode.facts.security import parse_security
from gpunode.facts.services import exec_words, parse_units
from gpunode.facts.smi import mig_instances, parse_smi
from gpunode.facts.toolkit import cdi_devices
from gpunode.facts.topology import parse_topology
from gpunode.facts.wire import Section, Sections, decode, encode, file_facts
from gpunode.fleet.inventory import parse_ssh_targets
from gpunode.fleet.inventory.members import members
from gpunode.fleet.inventory.reading import parse_inventory
from gpunode.foreign import read_json, read_toml, read_yaml
from gpunode.model.facts import KernelTree
from gpunode.model.files import FileFacts
from gpunode.model.installed import upstream
from gpunode.model.spec import TOOLKIT_CONFIG, RuntimeSpec, ToolkitConfig
from gpunode.packages.holds import PACMAN_IGNORES, VERSIONLOCK5, VERSIONLOCKS, ZYPP_LOCKS
from gpunode.packages.listings import parse_dpkg, parse_rpm, rpm_doubled
from gpunode.packages.openpgp import primary_fingerprints
from gpunode.packages.registry import BACKENDS
from gpunode.planner.engines.kubelet.refused import freed
from gpunode.specfile import parse_spec
from gpunode.transport.known_hosts import parse as parse_known_hosts
from gpunode.transport.refusals import not_started
from tests.engines.hosts import engine_facts, host_with
from tests.hostile.linear import assert_linear
from tests.planner.engines.kubelets import DEFAULT, KUBEADM, PACKAGED, node

Work = Callable[[str], object]


def inventory(text: str) -> object:
    tree = parse_inventory(text, "inventory", Path("/nosuch"))
    tree.check()
    return members(tree, tree.hosts)


def known_hosts(text: str) -> object:
    return parse_known_hosts([("/k", text)]).keys("gpu07")


def repeated(unit: str, head: str = "", tail: str = "") -> Callable[[int], str]:
    """About so many characters of `unit` again and again; {} in it is a number of its own."""

    def text(size: int) -> str:
        if "{}" not in unit:
            return head + unit * max(1, size // len(unit)) + tail
        units: list[str] = []
        left = size
        while left > 0:  # the numbers grow longer, and twice the size is to be twice the text
            units.append(unit.replace("{}", str(len(units))))
            left -= len(units[-1])
        return head + "".join(units) + tail

    return text


def held(path: str) -> Work:
    manager = next(m for m in BACKENDS.values() if path in m.hold_files)
    return lambda text: manager.held("", {path: file_facts(path, text)})


def upgrades(manager: str) -> Work:
    return lambda text: BACKENDS[manager].auto_upgrades(text, {}, {})


def without_labels(text: str) -> object:
    """What a kubelet does not start with, out of its flags."""
    return freed("/etc/default/kubelet", f"KUBELET_EXTRA_ARGS={text}\n", "flags", (1, 34))


def next_boot(text: str) -> object:
    return parse_next_boot(text, [KernelTree("6.8.0-1", True, True, None)])


def dumped(text: str) -> object:
    commands = {"containerd:1:plugins": Section("ID:            cri\n")}
    return _from_dump(Sections(commands), "containerd:1", text)


ARMOUR, ARMOUR_END = "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n", "-----END PGP PUBLIC KEY BLOCK-----\n"


def refusal(text: str) -> object:
    return not_started("gpu01", 1, b"", text.encode())


def reason(text: str) -> object:
    return advice_on(error_summary(tail(text)))


def tree(text: str) -> object:
    return parse_topology(Sections({"topology": Section(text), "switch_config": Section(text)}))


def kubelet(text: str) -> object:
    return told(node("1.30.1", {PACKAGED: KUBEADM, DEFAULT: text}))


PARSERS: dict[str, tuple[Work, Callable[[int], str]]] = {
    "kubelet: one flag's gates": (kubelet, repeated("G{}=true,", "KUBELET_EXTRA_ARGS=--feature-gates=")),
    "kubelet: one flag's letters": (kubelet, repeated("a", "KUBELET_EXTRA_ARGS=--feature-gates=")),
    "kubelet: letters in quotes": (kubelet, repeated("a", 'KUBELET_EXTRA_ARGS=--feature-gates="')),
    "kubelet: flags": (kubelet, repeated("--a{} ", "KUBELET_EXTRA_ARGS=")),
    "kubelet: lines": (kubelet, repeated("# --a\n", "", "KUBELET_EXTRA_ARGS=--a\n")),
    "lspci: brackets": (parse_lspci, repeated(" [0300]:", "0 ")),
    "lspci: brackets of names": (parse_lspci, repeated(" [a] [0302]: [10de:2330", "0000 ")),
    "lspci: blanks": (parse_lspci, repeated(" ")),
    "lspci: lines": (parse_lspci, repeated("0000:41:00.0 3D [0302]: NVIDIA Corporation GH100 [10de:2330] (rev a1)\n")),
    "pci: bars": (parse_pci, repeated("|")),
    "ExecStart: argv": (lambda text: exec_words({"ExecStart": text}), repeated("argv[]=")),
    "ExecStart: semicolons": (lambda text: exec_words({"ExecStart": text}), repeated(" ;argv[]= ;")),
    "units": (parse_units, repeated("Id=u{}\nMainPID=1\n\n")),
    "units: blanks": (parse_units, repeated("\n \t")),
    "units: newlines": (parse_units, repeated("\n")),
    "os-release: one word": (lambda text: parse_os(text, "x"), repeated("a", "ID=")),
    "os-release: quotes": (lambda text: parse_os(text, "x"), repeated("'\"'", "ID=")),
    "os-release: backslashes": (lambda text: parse_os(text, "x"), repeated("\\", "ID=")),
    "os-release: words": (lambda text: parse_os(text, "x"), repeated("a ", "ID=a\nID_LIKE=")),
    "os-release: lines": (lambda text: parse_os(text, "x"), repeated("K{}=v\n", "ID=a\n")),
    "ldconfig: one soname": (parse_ldconfig, repeated("libcuda.so.1 /p{}\n")),
    "ldconfig: many": (parse_ldconfig, repeated("lib{}.so /p\n")),
    "key values": (key_values, repeated("k{}=v\n")),
    "modinfo": (parse_modinfo, repeated("k{}: v\n")),
    "params": (parse_params, repeated(":")),
    "dkms": (parse_dkms, repeated("nvidia/1, k, x: y\n")),
    "dkms: commas": (parse_dkms, repeated(",", tail=":")),
    "NVLinks": (
        lambda text: parse_nvlinks(text, text),
        repeated("Link 0: <inactive>\nLink 1: CRC Errors: {}\n", f"GPU 0: H100 (UUID: GPU-{'0' * 36})\n"),
    ),
    "NVLinks: names": (lambda text: parse_nvlinks(text, ""), repeated("GPU 0: x (UUID: GPU-")),
    "peers": (parse_peers, repeated(" GPU{}\tX\tOK\n")),
    "peers: one line": (parse_peers, repeated("OK ", "GPU0 ")),
    "PCI tree: places": (tree, repeated("place=1 pci0000:15/0000:15:01.0/0000:19:00.0\nport=0000:17:02.0\n")),
    "PCI tree: one place": (tree, repeated("/0000:15:01.0", "place=1 pci0000:15")),
    "PCI tree: config space": (tree, repeated("000000 00000000 00000000 00000000 00000000\n*\nfffff0\n")),
    "kernel log: links": (parse_kernel_log, repeated("[ {}.1] mlx5_core 0000:1a:00.0 ib0: Link down\n")),
    "kernel log: Xids": (parse_kernel_log, repeated("[ {}.1] NVRM: Xid (PCI:0000:1a:00): 79, x\n")),
    "kernel log: Xids of one line": (parse_kernel_log, repeated("NVRM: Xid (PCI:0000:1a:00): 149, A Fatal XC0 ")),
    "kernel log: hangs": (parse_kernel_log, repeated("[ {}.1] INFO: task x:1 blocked for more than 120 seconds\n")),
    "kernel log: hangs and stacks": (
        parse_kernel_log,
        repeated("[ {}.1] INFO: task x:1 blocked for more than 1 seconds\n[ {}.1]  a+0x1/0x2 [nvidia]\n"),
    ),
    "kernel log: blanks": (parse_kernel_log, repeated(" ", "[")),
    "kernel state": (parse_kernel_state, repeated("aer=0000:1a:00.0 1 2 3\nedac=1 2\npstore=dmesg-{}\n")),
    "devices": (lambda text: parse_devices(text, ""), repeated("crw-rw-rw- 1 0 0 195,   {} Nov /dev/nvidia0\n")),
    "devices: blanks": (lambda text: parse_devices(text, ""), repeated(" ", "crw-rw-rw- 1 0 0 1, 2")),
    "devices: one line": (lambda text: parse_devices(text, ""), repeated("/de", "crw-rw-rw- 1 0 0 1, 2 ")),
    "proc devices": (parse_uvm_major, repeated(" ")),
    "proc devices: lines": (parse_uvm_major, repeated("\n")),
    "archives: options": (parse_archives, repeated(" ", "deb [")),
    "archives: components": (parse_archives, repeated(" a", "deb http://x y")),
    "archives: components of a comment": (parse_archives, repeated(" a", "deb http://x y", "#")),
    "archives: blanks": (parse_archives, repeated(" ")),
    "archives: newlines": (parse_archives, repeated("\n ")),
    "archives: stanzas": (parse_archives, repeated("Types: deb\nURIs: http://x\nSuites: a\n\n")),
    "versionlock": (held(VERSIONLOCKS[0]), repeated("a-{}-1\n")),
    "versionlock: dashes": (held(VERSIONLOCKS[0]), repeated("-1")),
    "versionlock: digits": (held(VERSIONLOCKS[0]), repeated("1")),
    "versionlock.toml": (held(VERSIONLOCK5), repeated(" ")),
    "versionlock.toml: newlines": (held(VERSIONLOCK5), repeated("\n")),
    "zypp locks": (held(ZYPP_LOCKS), repeated("\n ")),
    "zypp locks: words": (held(ZYPP_LOCKS), repeated("a", "x: ")),
    "zypp locks: blanks": (held(ZYPP_LOCKS), repeated(" ", "x:", "a b")),
    "pacman": (held(PACMAN_IGNORES), repeated("IgnorePkg = a\n")),
    "journal": (lambda text: parse_journal(text, {}), repeated('{"kind": "step-begin", "run": "r", "step": "s{}"}\n')),
    "whole journal": (parse_whole_journal, repeated('{"kind": "x"}\n')),
    "kernel trees": (lambda text: parse_trees("", text), repeated("/lib/modules/k{}/nvidia.ko\n")),
    "blacklist": (lambda text: parse_blacklist("", text), repeated("module_blacklist=a{} ")),
    "next boot": (next_boot, repeated("saved_entry=x\n")),
    "compiler": (parse_compiler, repeated("gcc ")),
    "compiler: parentheses": (parse_compiler, repeated("gcc (")),
    "compiler: one word": (parse_compiler, repeated("gcc-")),
    "kernel release": (version_key, repeated("1-a")),
    "dpkg": (parse_dpkg, repeated("p{}\t1\tamd64\tii\n")),
    "rpm": (parse_rpm, repeated("p{}\t1\tx86_64\n")),
    "rpm, twice": (rpm_doubled, repeated("p\t{}\tx86_64\n")),
    "known_hosts": (known_hosts, repeated("h{},10.0.0.{} ssh-ed25519 AAAA\n")),
    "known_hosts: one name": (known_hosts, repeated("gpu07 ssh-ed25519 AAAA\n")),
    "known_hosts: hashed": (known_hosts, repeated("|1|AAAA|AAAA ssh-ed25519 AAAA\n")),
    "known_hosts: empty lines": (known_hosts, repeated("\n")),
    "package lock": (parse_lock, repeated("1 ")),
    "auto upgrade": (upgrades("apt"), repeated("Unattended-Upgrade ")),
    "auto upgrade: blanks": (upgrades("dnf"), repeated(" ", "apply_updates")),
    "auto upgrade: newlines": (upgrades("dnf"), repeated("\n")),
    "keyrings": (parse_keyrings, repeated("a /k{}\n")),
    "key files": (parse_key_files, repeated("/etc/apt/keyrings/{}.gpg xjMEZVPxABYJ\n")),
    "key files: one": (parse_key_files, repeated("xjME", "/k ")),
    "a key file: packets": (lambda text: primary_fingerprints(text.encode("latin-1")), repeated("\xcd\x01x")),
    "a key file: armour": (lambda text: primary_fingerprints(text.encode()), repeated("xjME\n", ARMOUR, ARMOUR_END)),
    "a key file: blocks": (lambda text: primary_fingerprints(text.encode()), repeated(ARMOUR + ARMOUR_END)),
    "security": (parse_security, repeated("[", "lockdown=")),
    "smi": (lambda text: parse_smi(text, 0), repeated("<gpu id='0'/>", "<nvidia_smi_log>", "</nvidia_smi_log>")),
    "smi: names": (lambda text: parse_smi(text, 0), repeated("<process_name>", "<nvidia_smi_log>")),
    "smi: depth": (lambda text: parse_smi(text, 0), repeated("<g>", "<nvidia_smi_log>")),
    "smi: instances of one GPU": (mig_instances, repeated("  MIG 1g.10gb   Device  0: (UUID: MIG)\n", "GPU 0: x\n")),
    "CDI: JSON": (cdi_devices, repeated('{"name": "{}"},', '{"kind": "k", "devices": [', "{}]}")),
    "CDI: YAML": (cdi_devices, repeated('- name: "{}"\n', "kind: k\ndevices:\n")),
    "CDI: dashes": (cdi_devices, repeated("-", "kind: k\ndevices:\n")),
    "CDI: blanks": (cdi_devices, repeated(" ", "kind: k\ndevices:\n")),
    "CDI: newlines": (cdi_devices, repeated("\n", "kind: k\ndevices:\n")),
    "a version": (_version, repeated("1.1.")),
    "a version: digits": (_version, repeated("1")),
    "a plugin's error": (_plugin_error, repeated("Message: ")),
    "a plugin's error: newlines": (_plugin_error, repeated("\n")),
    "containerd's dump: handlers": (dumped, repeated("[a.containerd.runtimes.r{}]\n", 'default_runtime_name = "x"\n')),
    "containerd's dump: containerd": (dumped, repeated("containerd", 'default_runtime_name = "x"\n[')),
    "containerd's dump: runtimes": (dumped, repeated(".containerd.runtimes.a", 'default_runtime_name = "x"\n[')),
    "containerd's dump: newlines": (dumped, repeated("\n")),
    "a driver's version": (upstream, repeated("1")),
    "wire": (lambda text: decode(text.encode()), repeated("@ a{} rc=0\n|x\n", "@gpunode-facts 1\n", "@end\n")),
    "wire: a header": (
        lambda text: decode(text.encode()),
        repeated(" bytes=0", "@gpunode-facts 1\n@ file:/", "\n@end\n"),
    ),
    "wire: back": (lambda text: encode(Sections({"a": Section(text)})), repeated("x\n")),
    "toolkit's settings": (
        lambda text: setting(FileFacts(TOOLKIT_CONFIG, text), "table.key"),
        repeated("key{} = 'a'\n", "[table]\n"),
    ),
    "lines": (active_lines, repeated("#\n a\n")),
    "JSON: quotes": (read_json, repeated('\\"', '"')),
    "JSON: backslashes": (read_json, repeated("\\", '"')),
    "JSON: half pairs": (read_json, repeated("\\ud83d\\ude80", '"', '"')),
    "JSON: pairs of brackets": (read_json, repeated("[],", "[", "1]")),
    "JSON: keys": (lambda text: read_json(text, unique=True), repeated('"k{}": 1,', "{", '"z": 1}')),
    "JSON: a key that stands twice": (
        lambda text: read_json(text, unique=True),
        repeated('"k{}": 1,', "{", '"k0": 1}'),
    ),
    "JSON: a number": (read_json, repeated("1")),
    "TOML: tables": (read_toml, repeated("[t.a{}]\nk = 1\n")),
    "TOML: one dotted key": (read_toml, repeated("a.", tail="a = 1\n")),
    "TOML: one dotted key in quotes": (read_toml, repeated('"a" . ', tail="a = 1\n")),
    "TOML: one dotted header": (read_toml, repeated("a.", "[", "a]\n")),
    "TOML: an array": (read_toml, repeated("1,", "a = [", "]\n")),
    "TOML: a text": (read_toml, repeated("\\n", 'a = """', '"""\n')),
    "TOML: quotes": (read_toml, repeated('"')),
    "TOML: a number": (read_toml, repeated("1", "a = ")),
    "TOML: words": (read_toml, repeated("a")),
    "TOML: statements": (statements.__wrapped__, repeated('[t."a{}"]\nk = [1, # x\n  2]\n# y\n')),
    "YAML: aliases": (read_yaml, repeated("- *a\n", "- &a x\n")),
    "YAML: flow": (read_yaml, repeated("a, ", "[", "]")),
    "YAML: keys": (read_yaml, repeated("k{}: v\n")),
    "YAML: open brackets": (read_yaml, repeated("[")),
    "YAML: dashes": (read_yaml, repeated("- ")),
    "YAML: anchors": (read_yaml, repeated("- &a{} x\n")),
    "YAML: text": (read_yaml, repeated("a\n ", "k: >\n ")),
    "YAML: quotes": (read_yaml, repeated("''", "k: '")),
    "YAML: question marks": (read_yaml, repeated("? ")),
    "spec: unknown keys": (parse_spec, repeated("k{}: v\n")),
    "spec: one key": (parse_spec, repeated("a", tail=": v\n")),
    "spec: a list": (parse_spec, repeated("docker,", "runtime: ")),
    "spec: a list of nobody": (parse_spec, repeated("x{},", "runtime: ")),
    "spec: a URL": (parse_spec, repeated("a@", "mirror: https://")),
    "spec: a proxy": (parse_spec, repeated("a", "proxy: ")),
    "spec: layouts": (parse_spec, repeated("all=1g.10gb,", "mig: ")),
    "kubelet: labels": (without_labels, repeated("a{}.k8s.io/x=1,", "--node-labels=")),
    "kubelet: letters": (without_labels, repeated("a", "--node-labels=", "=1")),
    "kubelet: parts": (without_labels, repeated("a/", "--node-labels=", "x=1")),
    "hosts": (lambda text: parse_ssh_targets([text]), repeated("h{},", tail="x")),
    "hosts: brackets": (lambda text: parse_ssh_targets([text]), repeated("[")),
    "hosts: commas in brackets": (lambda text: parse_ssh_targets([text]), repeated(",", "[")),
    "hosts: commas": (lambda text: parse_ssh_targets([text]), repeated(",")),
    "a refusal of sudo": (refusal, repeated("I'm sorry ")),
    "a refusal of sudo: its name": (refusal, repeated("sudo")),
    "a refusal of sudo: questions": (refusal, repeated("[sudo: [gpunode] password of ")),
    "a refusal of sudo: owners": (refusal, repeated("[gpunode] password of a for ")),
    "a tool's reason: errors": (reason, repeated("E: x\n")),
    "a tool's reason: continuations": (reason, repeated(" - x\n", "dpkg: error:\n")),
    "a tool's reason: blanks": (reason, repeated(" ", "dpkg: error:\n ")),
    "a tool's reason: one word": (reason, repeated("dpkg", "dpkg: error: \nE: Sub-process ")),
    "a tool's reason: lists": (reason, repeated("Errors were encountered while processing:\n x\n")),
    "a tool's reason: paths": (reason, repeated("/a", "E: ", ": Read-only file system")),
    "inventory: a list": (inventory, repeated("h{}\n", tail="-x\n")),
    "inventory: colons": (inventory, repeated(":", "a")),
    "inventory: INI": (inventory, repeated("h ansible_port=1 x=y\n", "[g]\n")),
    "inventory: INI, one line": (inventory, repeated("a=b ", "[g]\nh ")),
    "inventory: INI, arguments": (inventory, repeated("-o A=b ", "[g:vars]\nansible_ssh_args=", "\n[g]\nh\n")),
    "inventory: our own": (inventory, repeated("  h: {port: 1}\n", "hosts:\n")),
    "inventory: JSON": (inventory, repeated('"h",', '{"g": {"hosts": [', '"h"]}}')),
    "hosts: ranges": (lambda text: parse_ssh_targets([text]), repeated("[1]")),
    "k3s": (lambda text: k3s.default_runtime("/x", text), repeated("default-runtime")),
    "k3s: blanks": (lambda text: k3s.default_runtime("/x", text), repeated(" ", "default-runtime: a", "b#")),
    "k3s: quotes": (lambda text: k3s.default_runtime("/x", text), repeated("'", "default-runtime: ")),
}


@pytest.mark.parametrize(("work", "made"), PARSERS.values(), ids=PARSERS)
def test_a_parser_is_linear(work: Work, made: Callable[[int], str]) -> None:
    assert_linear(work, made)


def test_what_is_quadratic_is_found_out() -> None:
    with pytest.raises(AssertionError, match=r"\d s, "):
        assert_linear(lambda text: [text.count("a") for _ in range(len(text) // 8)], repeated("a"))


# ---- rewriters


ENGINE = ("plugins", "io.containerd.grpc.v1.cri", "containerd")
RUNTIMES = '[plugins."io.containerd.grpc.v1.cri".containerd.runtimes'
CRI = '[plugins."io.containerd.grpc.v1.cri".containerd]\n  default_runtime_name = "runc"\n'
ANEW = f'{CRI}  runtimes.runc.runtime_type = "x"\n'  # for its dotted key the table is written anew


def with_runtime(text: str) -> object:
    toml_text.parsed.cache_clear()  # of several looks at a cost the least counts, which is to read the text as well
    statements.cache_clear()
    want = copy.deepcopy(toml_text.load("/x", text))
    table = want
    for key in ENGINE:
        table = table.setdefault(key, {})
    table["default_runtime_name"] = "nvidia"
    table.setdefault("runtimes", {})["nvidia"] = {"runtime_type": "x", "options": {"BinaryName": "/x"}}
    after = toml_text.rewrite("/x", text, want, ENGINE)
    assert after != text
    return after


def docker(text: str) -> object:
    engine = engine_facts("docker", "28.0.0")
    return Docker().rewrite(host_with(engine, files={engine.config_path: text}), engine, RuntimeSpec())


def toolkit(text: str) -> object:
    return toolkit_config.rewrite(file_facts(TOOLKIT_CONFIG, text), ToolkitConfig(no_cgroups=True, mode="cdi"))


def diff(change: Callable[[str], str]) -> Work:
    """Each time under another name: a diff of the same texts is kept."""
    names = itertools.count()
    return lambda text: unified(f"/x{next(names)}", text, change(text))


REWRITERS: dict[str, tuple[Work, Callable[[int], str]]] = {
    "containerd: plugins of others": (with_runtime, repeated('[plugins."x.{}"] # c\n  k = 1\n\n', tail=CRI)),
    "containerd: ... below": (with_runtime, repeated('\n# c\n[plugins."x.{}"]\n  k = 1\n', head=CRI)),
    "containerd: registries": (
        with_runtime,
        repeated('[plugins."io.containerd.grpc.v1.cri".registry.mirrors.m{}]\n  endpoint = ["x"]\n', head=CRI),
    ),
    "containerd: handlers": (with_runtime, repeated(f'{RUNTIMES}.r{{}}]\n  runtime_type = "x"\n', head=CRI)),
    "containerd: a list": (with_runtime, repeated('"x{}",', head="imports = [", tail=f"]\n{CRI}")),
    "containerd: comments of what is written anew": (with_runtime, repeated("# {}\n", ANEW)),
    "containerd: a list in what is written anew": (with_runtime, repeated("1, # {}\n", f"{ANEW}  k = [", "]\n")),
    "containerd: dotted keys": (with_runtime, repeated("  runtimes.r{}.a = 1\n", CRI)),
    "containerd: tables that are left and come back": (
        with_runtime,
        repeated(f'{RUNTIMES}.r{{}}]\n[plugins."io.containerd.grpc.v1.cri".x{{}}]\n', CRI),
    ),
    "docker: labels": (docker, repeated('"l{}",', '{"labels": [', '"x"]}')),
    "docker: keys": (docker, repeated('"k{}": {"a": []},', "{", '"z": 1}')),
    "docker: runtimes": (docker, repeated('"r{}": {"path": "/x"},', '{"runtimes": {', '"z": {"path": "/x"}}}')),
    "docker: depth 90": (docker, repeated('"k{}": ' + "[" * 90 + "]" * 90 + ",", "{", '"z": 1}')),
    "toolkit: comments": (toolkit, repeated("# no-cgroups = false\n", "[nvidia-container-cli]\n")),
    "toolkit: tables": (toolkit, repeated("[t{}]\nk = 1\n")),
    "position": (lambda text: json_text.position(text, ("z",)), repeated('"k{}": 1,', "{", '"z": 1}')),
    "diff: the first and the last line": (diff(lambda text: f"a\n{text}b\n"), repeated("x {}\n")),
    "diff: all lines": (diff(lambda text: text.replace("x", "y")), repeated("x {}\n")),
    "diff: equal lines": (diff(lambda text: text + "x\n"), repeated("x\n")),
    "diff: every other line": (diff(lambda text: text.replace("x\n", "")), repeated("x\ny\n")),
}  # fmt: skip


@pytest.mark.parametrize(("work", "made"), REWRITERS.values(), ids=REWRITERS)
def test_a_rewriter_is_linear(work: Work, made: Callable[[int], str]) -> None:
    assert_linear(work, made)
