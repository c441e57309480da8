"""No secret outlives masking, whatever its form; the text keeps its shape; masked twice is masked once."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import pytest
import tomlkit
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from gpunode.masking import MASK, form_of, is_secret, mask_argv, masked

SECRET = "hunter2"
PEM = f"-----BEGIN RSA PRIVATE KEY-----\n{SECRET}\n{SECRET}\n-----END RSA PRIVATE KEY-----"
LINES = {
    "a password": 'password = "hunter2"',
    "a word of its own": "gelf-pass=hunter2",
    "pwd": "pwd: hunter2",
    "an AWS key": "aws_access_key=hunter2",
    "blanks in a value that ends with its line": "token: hun hunter2",
    "a flag and its value": "k3s server --token hunter2 --disable traefik",
    "a flag with =": "--etcd-s3-secret-key=hunter2",
    "a flag and a quoted value": "--agent-token 'hunter2 hunter2' x",
    "an address": "http://user:hunter2@proxy:3128/x",
    "an address without a user": "http://:hunter2@proxy:3128",
    "a token as the user": "https://hunter2@mirror.example/",
    "an @ in the password": "http://user:hun@hunter2@proxy:3128",
    "a slash in the password": "http://user:hunter2/hunter2@proxy:3128",
    "a # in the password": "http://user:x#hunter2@proxy:3128",
    "two addresses": "a=http://u:hunter2@a/,http://v:hunter2@b/",
    "an address without a scheme": "proxy=user:hunter2@proxy:3128",
    "a data source of k3s": "--datastore-endpoint=mysql://k3s:hunter2@tcp(10.0.0.1:3306)/k3s",
    "a data source without a scheme": "endpoint k3s:hunter2@tcp(10.0.0.1:3306)/k3s",
    "a header": 'curl -H "Authorization: Bearer hunter2" http://x',
    "a cookie": "curl -H 'Cookie: a=1; b=hunter2'",
    "bearer in a sentence": "it sent Bearer hunter2-hunter2",
    "the environment": "K3S_TOKEN=hunter2",
    "systemd's environment": 'Environment="K3S_TOKEN=hun hunter2" "A=b"',
    "an exported variable": "export RKE2_TOKEN=hun hunter2",
    "a comment": "# password: hunter2",
    "a diff": '+    "auth": "hunter2",',
    "an array": 'Authorization = ["Bearer hunter2"]',
    "an array over lines": 'tokens = [\n  "hunter2", # old\n  "x"\n]',
    "a query": "https://host/x?sig=hunter2&se=1",
    "a process of the wire": "arg=/usr/bin/k3s\narg=--token\narg=hunter2\narg=server",
    "a short flag of k3s": "arg=/usr/bin/k3s\narg=agent\narg=-t\narg=hunter2",
    "a secret that begins with a dash": "arg=--token\narg=-hunter2",
    "systemd's ExecStart": "ExecStart={ path=/k3s ; argv[]=/k3s server --token hun hunter2 ; ignore_errors=no ; x=1 }",
    "a unit's ExecStart": "ExecStart=/usr/bin/k3s agent -t hunter2 --node-name a",
    "kubeadm's key of certificates": "kubeadm join a:6443 --control-plane --certificate-key hunter2",
    "the same in a file": "certificateKey: hunter2",
    "a kubeconfig's key": "client-key-data: hunter2",
    "a storage account": "AZURE_STORAGE_KEY=hunter2",
    "netrc": "machine r.example login me password hunter2",
    "netrc on lines": "machine r.example\n\tlogin me\n\tpassword hunter2\n",
    "netrc's default": "default login me account us password hunter2",
    "GitHub": "github_pat_11ABCDEFG0hunter2klmnopqrstuvwxyz",
    "GitHub behind a name": "X=github_pat_11ABCDEFG0hunter2klmnopqrstuvwxyz",
    "GitHub's older ones behind a name": "X=ghp_11ABCDEFG0hunter2klmnopqrstuvwxyz",
    "Hugging Face": "HF=hf_hunter2jklmnopqrstuvwxyzABCDEFGH",
    "a key": PEM,
    "a key without an end": PEM[:-20],
    "a key in a string": json.dumps({"x": PEM}),
    "a carriage return": "password: hunter2\r\nx: 1\r\n",
}
JSON = {
    "registry logins": '{"auths": {"registry.example": {"auth": "hunter2", "email": "hunter2"}}}',
    "log options": '{"log-opts": {"splunk-token": "hunter2", "gelf-pass": "hunter2"}}',
    "a number": '{"pwd": 12345678}',
    "an escaped key": '{"pass\\u0077ord": "hunter2"}',
    "escaped slashes": '{"http-proxy": "http:\\/\\/user:hunter2@proxy:3128"}',
    "an escaped @": '{"http-proxy": "http://user:hunter2\\u0040proxy:3128"}',
    "an argv": '{"args": ["server", "--token", "hunter2"]}',
    "a variable of Kubernetes": '{"env": [{"name": "K3S_TOKEN", "value": "hunter2"}]}',
    "a list": '{"tokens": ["hunter2", ["hunter2"], {"a": "hunter2"}]}',
    "a file in a string": json.dumps({"text": json.dumps({"auths": {"r": {"auth": SECRET}}})}),
    "toml in a string": json.dumps({"text": f'[a.auth]\nusername = "{SECRET}"\n'}),
    "quotes in a secret": '{"password": "a\\"hunter2\\"b"}',
    "an escape in the middle of a name": '{"to\\u006ben": "hunter2"}',
    "a name all in escapes": '{"\\u0074\\u006f\\u006b\\u0065\\u006e": "hunter2", "x": 1}',
    "an escaped name in a list of objects": '[{"a": 1}, {"gelf-p\\u0061ss" : "hunter2"}]',
}
TOML = {
    "a table": '[plugins."io.containerd.grpc.v1.cri".registry.configs."r.example".auth]\nusername = "hunter2"\n',
    "a table below": '[a.auth.more]\nx = "hunter2"\n[b]\ny = 1\n',
    "a string over lines": 'password = """\nhunter2\n  hunter2"""\nx = 1\n',
    "a literal over lines": "token = '''\nhunter2\n'''\n",
    "an array over lines": 'tokens = [\n  "hunter2", # hunter\n  "hunter2",\n]\nx = 1\n',
    "a dotted key": 'a.identitytoken.b = "hunter2"\n',
    "a quoted key": '"the token" = "hunter2"\n',
    "an inline table": 'auth = {username = "hunter2", n = 7}\n',
    "an inner inline table": 'r = {a = {password = "hunter2"}, b = 1}\n',
    "headers": '[host."https://r.example".header]\nX-Own = ["hunter2", "hunter2"]\n',
    "an argv": 'args = ["--token", "hunter2"]\n',
    "a key in a string": f"x = '''\n{PEM}\n'''\n",
    "an escape in a name": '"to\\u006ben" = "hunter2"\n',
    "a long escape in a part of a name": 'a."to\\U0000006ben".b = "hunter2"\n',
    "an escape in a table's name": '[a."r.example"."au\\u0074h"]\nusername = "hunter2"\n',
    "an escape in an inline table": 'r = {"to\\U0000006ben" = "hunter2", b = 1}\n',
    "an escape in headers": '[host."https://r.example"."h\\u0065ader"]\nX-Own = ["hunter2"]\n',
}
YAML = {
    "k3s": 'write-kubeconfig-mode: "0644"\ntoken: hunter2\nnode-label:\n  - a=b\n',
    "a block": "token: |\n  hunter2\n\n  hunter2\nx: 1\n",
    "a folded block with marks": "agent-token: >-2\n    hunter2\nx: 1\n",
    "a mapping": "auth:\n  username: hunter2\n  more:\n    - hunter2\nx: 1\n",
    "a list at the key's own column": "tokens:\n- hunter2\n- 'hunter2'\nx: 1\n",
    "a list in a list": "- tokens:\n  - hunter2\n- x: 1\n",
    "a block in a mapping": "auth:\n  a: |\n    hunter2\n  b: hunter2\nx: 1\n",
    "a plain value over lines": "token: hunter2\n  hunter2\nx: 1\n",
    "a string over lines": 'token: "hunter2\n  hunter2"\nx: 1\n',
    "a flow": "a: {token: hun hunter2, b: 1}\n",
    "a flow over lines": "a: {b: 1,\n  token: 'hunter2',\n  c: [x]}\nd: 1\n",
    "arguments": "args:\n  - --token\n  - hunter2\n  - --token=hunter2\n",
    "a variable": "env:\n- name: K3S_TOKEN\n  value: hunter2\n- name: A\n  value: b\n",
    "an argument of a component": "kube-apiserver-arg:\n  - 'etcd-s3-secret-key=hunter2'\n",
    "an anchor": "token: &a hunter2\nx: 1\n",
    "a quoted key": '"token": hunter2\n',
    "two documents": "token:\n  hunter2\n---\nx: 1\n",
    "an explicit key": "? token\n: hunter2\n",
    "an explicit key with a comment": "? token # of the file\n# that\n: hunter2\nx: 1\n",
    "an explicit key in a list": "- ? token\n  : hunter2\n- x: 1\n",
    "an explicit key and a block": "a:\n  ? token\n  : |\n    hunter2: x\n    hunter2\nx: 1\n",
    "an explicit key and a list": "? tokens\n: - hunter2\n  - a: hunter2\nx: 1\n",
    "an explicit key and a mapping": "? auth\n: username: hunter2\n  more: hunter2\nx: 1\n",
    "an explicit key on a line of its own": "?\n  token\n:\n  hunter2\nx: 1\n",
    "an explicit key in a block": "? |-\n  token\n: hunter2\nx: 1\n",
    "an explicit key over lines": '? "to\\\n  ken"\n: hunter2\nx: 1\n',
    "an explicit key with a tag": "? !!str token\n: hunter2\n",
    "an explicit key with an escape": '? "to\\x6ben"\n: hunter2\n',
    "an explicit key in a flow": "{? token : hunter2}\n",
    "an explicit key over lines of a flow": "a: {b: 1, ?\n  token :\n  hunter2, c: 2}\n",
    "an explicit key with an escape in a flow": 'a: {? "to\\x6ben" : hunter2}\n',
    "an explicit pair in a list": 'a: [? "to\\x6ben" : hunter2, x]\n',
    "an escape in a name": '"to\\x6ben": hunter2\n',
    "a long escape in a name": '"to\\u006ben": |\n  hunter2\nx: 1\n',
    "the longest escape in a name": '"to\\U0000006ben":\n  a: hunter2\nx: 1\n',
    "an escape in a flow": 'a: {"to\\x6ben": hunter2, "to\\u006ben": hunter2}\n',
    "an escape in a pair of a list": 'a: ["to\\x6ben": hunter2]\n',
    "an escape in a variable's name": 'env:\n- name: "K3S_TO\\x4bEN"\n  value: hunter2\n',
    "an escape in an argument": 'args:\n- "--to\\x6ben"\n- hunter2\n',
    "a tag before a name": "!!str token: hunter2 hunter2\n",
    "an anchor before a name": "&a token:\n  hunter2\nx: 1\n",
    "an alias as a name": "x: &a token\n*a :\n  hunter2\n",
    "an alias as a name in a flow": "x: &a token\ny: {*a : hunter2}\n",
    "a block in a list": "tokens:\n- |\n  hunter2: x\nx: 1\n",
}


def rows(cases: dict[str, str]) -> list[Any]:
    return [pytest.param(text, id=name) for name, text in cases.items()]


@pytest.mark.parametrize("text", rows(LINES))
def test_of_lines_no_secret_is_left(text: str) -> None:
    holds(text, "", None)


@pytest.mark.parametrize("text", rows(JSON))
def test_json_stays_json(text: str) -> None:
    holds(text, "json", json.loads)


@pytest.mark.parametrize("text", rows(TOML))
def test_toml_stays_toml(text: str) -> None:
    holds(text, "toml", tomlkit.parse)


@pytest.mark.parametrize("text", rows(YAML))
def test_yaml_stays_yaml(text: str) -> None:
    holds(text, "yaml", lambda text: list(yaml.safe_load_all(text)))


@pytest.mark.parametrize("form", ["", "json", "toml", "yaml", "jsonl"])
@pytest.mark.parametrize("text", rows({**LINES, **JSON}))
def test_a_wrong_form_hides_no_less(text: str, form: str) -> None:
    holds(text, form, None)


@pytest.mark.parametrize("text", rows({name: text for name, text in JSON.items() if "\\u00" in text.partition(":")[0]}))
def test_json_among_lines_hides_no_less(text: str) -> None:
    assert SECRET not in masked(f"it answered: {text}", "lines")


@pytest.mark.parametrize("cut", range(2, 60, 3))
@pytest.mark.parametrize("form", ["json", "toml", "yaml"])
def test_a_text_that_ends_in_the_middle_hides_no_less(form: str, cut: int) -> None:
    cases = {"json": JSON, "toml": TOML, "yaml": YAML}[form]
    for text in cases.values():
        if len(text) > cut + 8:
            assert SECRET not in masked(text[:-cut], form), text[:-cut]


def holds(text: str, form: str, parse: Callable[[str], object] | None) -> None:
    """No secret, the same number of lines, the same the second time, and still of its form."""
    out = masked(text, form)
    assert SECRET not in out
    assert "12345678" not in out
    assert MASK in out
    assert out.count("\n") == text.count("\n")
    assert masked(out, form) == out
    if parse:
        parse(text)
        parse(out)


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ('{"authorization-plugins": ["a"], "userland-proxy": false, "live-restore": true}', "json"),
        ('{"registry-mirrors": ["https://mirror.example:5000/path@2x"], "auths": {}}', "json"),
        (
            '[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia.options]\nBinaryName = "/usr/bin/x"\n',
            "toml",
        ),
        ("token-file: /etc/rancher/token\nsecrets-encryption: true\nno-proxy: localhost\n", "yaml"),
        ("image: r.example/a:1@sha256:0123456789abcdef\n", "yaml"),
        ("? a\n: b\n? 'c d'\n: - e\n  - f\n? token-file # where\n: /etc/token\n", "yaml"),
        ('a: {? b : c, "\\x64": e}\n"\\x66": g\nh: [i: j, ? k : l]\n', "yaml"),
        ('{"\\u0061": "b", "*.example": "c"}', "json"),
        ('"\\u0061".b = "c"\n["\\u0064"]\ne = 1\n', "toml"),
        ('it said {"\\u0061b": "c"}', "lines"),
        ("NAME=\"Debian GNU/Linux\"\nHOME_URL='https://www.debian.org/'\n", ""),
        ("ExecStart={ path=/usr/bin/dockerd ; argv[]=/usr/bin/dockerd -H fd:// ; ignore_errors=no }", ""),
        ("client-key: /etc/k.pem\ntls-private-key-file: /etc/k.pem\nclient-certificate-data: LS0t\n", "yaml"),
        ("key=a\nthe default password is what the login asks for; machine a login failed, password expired\n", ""),
        ("hf_transfer=1\nHF_HUB_OFFLINE=1\ngithub_pat_x\n/models/hf_llama\n", ""),
        ("PWD=/root\nauthor: someone\n12:00:01 user@1000.service\n", ""),
        ("gpunode check --ssh root@gpu01:2222,root@gpu02:2222 --jump=ann@b1:22,bob@b2:22\n", ""),
        ("try again (gpunode setup --ssh gpu[01-02,07]:22,root@db[1-3],CORP\\ann@[fe80::1%eth0]:22).", ""),
        ("-o ProxyJump=ann@b1:22,bob@b2:22\n", ""),
        ("0000:41:00.0|0x10de|0x030200|0x2330\nnvidia 610.57.04 live 4\n", ""),
    ],
)
def test_what_is_no_secret_stays_to_the_byte(text: str, form: str) -> None:
    assert masked(text, form) == text


def test_an_argv_keeps_its_length() -> None:
    words = ("server", "--token", SECRET, "-t", SECRET, "--agent-token=" + SECRET, "--disable", "traefik")
    assert mask_argv(words) == ("server", "--token", MASK, "-t", MASK, f"--agent-token={MASK}", "--disable", "traefik")


def test_a_file_tells_its_form() -> None:
    assert form_of("/etc/docker/daemon.json") == "json"
    assert form_of("/etc/crio/crio.conf.d/10-x.conf") == "toml"
    assert form_of("/etc/rancher/k3s/config.yaml") == "yaml"
    assert form_of("/etc/apt/sources.list") == ""


NAMES = st.sampled_from(["token", "auth", "password", "a", "b.c", "log-opts", "gelf-pass", "Ärger", "x y"])
# Canaries with every character that a form could stumble over; each is told from all other text by its ends.
CANARY = st.text(alphabet="\"'\\\n {}[],:=#@/%&|>-é", max_size=6).map(lambda middle: f"hunter2{middle}hunter2")
VALUES = st.recursive(
    st.one_of(CANARY, st.booleans(), st.none()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=8,
)


def secret_leaves(value: object, secret: bool = False) -> bool:
    """Whether a string stands somewhere behind a secret name."""
    if isinstance(value, dict):
        return any(secret_leaves(v, secret or is_secret(k)) for k, v in value.items())
    if isinstance(value, list):
        return any(secret_leaves(v, secret) for v in value)
    return secret and isinstance(value, str)


@settings(max_examples=300, derandomize=True, deadline=None)
@given(st.dictionaries(st.sampled_from(["token", "auth", "gelf-pass"]), VALUES, min_size=1, max_size=3))
def test_any_json_behind_a_secret_name_is_hidden(value: dict[str, object]) -> None:
    for text in (json.dumps(value), json.dumps(value, indent=2, ensure_ascii=False)):
        out = masked(text, "json")
        assert SECRET not in out
        json.loads(out)
        assert masked(out, "json") == out


@settings(max_examples=200, derandomize=True, deadline=None)
@given(st.dictionaries(st.sampled_from(["token", "auth", "gelf-pass"]), VALUES, min_size=1, max_size=3))
def test_any_yaml_behind_a_secret_name_is_hidden(value: dict[str, object]) -> None:
    text = yaml.safe_dump(value, allow_unicode=True)
    out = masked(text, "yaml")
    assert SECRET not in out
    assert masked(out, "yaml") == out


@settings(max_examples=200, derandomize=True, deadline=None)
@given(st.dictionaries(st.sampled_from(["token", "auth", "gelf-pass"]), CANARY, min_size=1, max_size=3))
def test_any_toml_behind_a_secret_name_is_hidden(value: dict[str, str]) -> None:
    out = masked(tomlkit.dumps(value), "toml")
    assert SECRET not in out
    tomlkit.parse(out)
    assert masked(out, "toml") == out


@settings(max_examples=300, derandomize=True, deadline=None)
@given(st.text(max_size=200), st.sampled_from(["", "json", "toml", "yaml", "jsonl"]))
def test_any_text_at_all_is_masked_once_for_all(text: str, form: str) -> None:
    out = masked(text, form)
    assert out.count("\n") == text.count("\n")
    assert masked(out, form) == out


@settings(max_examples=200, derandomize=True, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [
                *("token", "--token ", "token=", '"""', "? token\n:", "\\u006b", *"[]{}\"'=:#-|\n ,a@/\\?*"),
                *("curl ", " -u ", "mysql -p", "\\\n", "- curl\n- -u\n- ", "arg=-u\n", "docker run login -p "),
            ]
        ),
        max_size=40,
    )
)
def test_any_heap_of_marks_is_masked_once_for_all(marks: list[str]) -> None:
    for form in ("", "json", "toml", "yaml"):
        out = masked("".join(marks), form)
        assert out.count("\n") == "".join(marks).count("\n")


def test_a_thousand_open_brackets_need_no_stack() -> None:
    depth = sys.getrecursionlimit() * 5
    assert SECRET not in masked('{"token":' + "[" * depth + f'"{SECRET}"', "json")
