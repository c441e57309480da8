"""One secret in each place where a host keeps some: none of them comes out of gpunode, whatever is asked of it.

Each canary is different, so that a failure names its place. `plan --save` and `runtime configure --dry-run` into a pipe
or a file are the two that must hold a file's bytes: what they write is for setup and for the engine to read, and 0600.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import re
import tarfile
from collections.abc import Iterable
from pathlib import Path

import pytest

from gpunode.apply.journal.entries import Journal
from gpunode.catalog.load import load_catalog
from gpunode.cli.app import main
from gpunode.errors import ExitCode, GpunodeError
from gpunode.facts.collect import assemble
from gpunode.facts.recordings import masked
from gpunode.facts.wire import Section, Sections, decode, encode, file_facts
from gpunode.fleet.run_log import RunLog
from gpunode.model.action import PutFile
from gpunode.model.report import HostOutcome
from gpunode.model.spec import Spec
from gpunode.offline.bundle import Entry, HostFiles, bundle
from gpunode.planner.plan import make_plan
from gpunode.render.machine import error_json, host_line

EXAMPLES = Path(__file__).parents[2] / "examples" / "hosts"
CANARY = re.compile(r"cnry[0-9]{2}")


def canary(number: int) -> str:
    """As long and as mixed as a password; nothing in its own form gives it away."""
    return f"cnry{number:02d}Zq7vX"


PEM = "-----BEGIN EC PRIVATE KEY-----\n{}\n-----END EC PRIVATE KEY-----\n"
# /PATH: a file as it is; NAME: lines added to a section of the probe. {0}, {1} ... are canaries of their own.
DOCKER = {
    "/etc/docker/daemon.json": json.dumps(
        {
            "log-driver": "gelf",
            "log-opts": {"gelf-pass": "{0}", "splunk-token": "{1}", "aws_access_key": "{2}", "aws-secret": "{3}"},
            "proxies": {"http-proxy": "http://me:{4}@proxy:3128", "https-proxy": "http://{5}@proxy"},
            "registry-mirrors": ["https://{6}@mirror.example", "https://me:{7}@mirror.example"],
            "labels": ["pwd={8}", PEM.format("{9}")],
        },
        indent=2,
    ),
    "/etc/containerd/config.toml": """version = 2
[plugins."io.containerd.grpc.v1.cri".registry.configs."r.example".auth]
  username = "{0}"
  password = '''
{1}
{2}'''
  identitytoken = "{3}"
[plugins."io.containerd.grpc.v1.cri".registry.headers]
  X-Meta = ["{4}", "{5}"]
[plugins."io.containerd.grpc.v1.cri".registry.mirrors."docker.io"]
  endpoint = ["https://user:{6}@mirror.example"]
[plugins."io.containerd.grpc.v1.cri"]
  tokens = [
    "{7}",  # {8}
    "{9}",
  ]
""",
    "/etc/containerd/conf.d/10-hosts.toml": '[host."https://r.example".header]\n  authorization = "Basic {0}"\n',
    "/etc/apt/sources.list.d/nvidia.list": "deb [signed-by=/x] https://me:{0}@mirror.example/nvidia ./\n",
    "/etc/apt/sources.list.d/cuda.sources": "Types: deb\nURIs: https://{0}@mirror.example/cuda\nSuites: ./\n",
    "/etc/yum.repos.d/cuda.repo": "[cuda]\nbaseurl=https://me:{0}@r.example/\nusername=me\npassword={1}\n"
    "proxy=http://proxy:3128\nproxy_password = {2}\n",
    "/etc/crio/crio.conf.d/10-x.conf": '[crio.image]\nglobal_auth = "{0}"\n',
    "/etc/k0s/containerd.toml": '[a.auth]\nsecret = "{0}"\n',
    "/var/snap/microk8s/current/args/containerd-template.toml": '{{{{ x }}}}\n[b."r".auth]\n  password = "{0}"\n',
    "cmdline": "k3s.token={0} ds=nocloud;s=http://me:{1}@seed.example/ ip=dhcp",
    "apt_archives": "deb https://me:{0}@mirror.example/debian bookworm main",
    "kernel_log": "[1.0] nvidia: option NVreg_password={0}",
    "journal": '{{"kind": "command", "run": "r", "step": "s", "argv": ["x", "--token", "{0}", "--password={1}"]}}',
    "docker:info": '"HttpProxy": "http://me:{0}@proxy:3128", "Labels": ["token={1}"], ',
    "process:77": "comm=dockerd\narg=/usr/bin/dockerd\narg=--log-opt\narg=gelf-pass={0}\narg=--secret\narg={1}",
    "containerd:1100:dump": '[plugins."x".registry.configs."r".auth]\n  auth = "{0}"',
    "crio:config": '[crio.api]\n  stream_token = "{0}"',
    "podman": "Error: reading https://me:{0}@r.example/: token={1}",
}
KUBERNETES = {
    "/etc/rancher/k3s/config.yaml": "token: {0}\nagent-token: >-\n  {1}\ndatastore-endpoint: mysql://k:{2}@tcp(db:3306)/k\n"
    "etcd-s3-secret-key: {3}\nkube-apiserver-arg:\n  - service-account-signing-secret={4}\n  - --token\n  - {5}\n",
    "/etc/rancher/k3s/config.yaml.d/10.yaml": "tokens:\n- {0}\n- a: {1}\nflow: {{b: 1, password: x {2}}}\n",
    "/etc/rancher/rke2/config.yaml": "token: '{0}\n  {1}'\nprivate-registry-auth: {{user: a, x: {2}}}\n",
    "process:78": "comm=k3s-server\narg=/usr/local/bin/k3s\narg=server\narg=--token\narg={0}\n"
    "arg=--etcd-s3-secret-key={1}\narg=-t\narg={2}\narg=--datastore-endpoint\narg=postgres://u:{3}@db/k",
    "process:79": "comm=kubelet\narg=/usr/bin/kubelet\narg=--bootstrap-token={0}",
    "cmdline": "inst.vncpassword={0}",
}
EXEC = (
    "Id=k3s.service\nLoadState=loaded\nActiveState=active\nSubState=running\nUnitFileState=enabled\nMainPID=900\n"
    "NRestarts=0\nExecStart={{ path=/usr/local/bin/k3s ; argv[]=/usr/local/bin/k3s server --token {0} {1} "
    "--etcd-s3-secret-key={2} -t {3} --disable traefik ; ignore_errors=no ; start_time=[n/a] ; stop_time=[n/a] ; "
    "pid=0 ; code=(null) ; status=0/0 }}\n"
)


def hidden(texts: dict[str, str], base: str, start: int) -> tuple[bytes, dict[str, str]]:
    """The base host's stream with these texts in it, and canary -> its place."""
    sections = decode((EXAMPLES / base / "facts.txt").read_bytes())
    commands, files, places = dict(sections.commands), dict(sections.files), dict[str, str]()

    def filled(name: str, text: str) -> str:
        """{0} becomes a canary of this place; the text's own braces are doubled, but not in JSON files."""
        numbers = sorted({int(n) for n in re.findall(r"\{([0-9])\}", text)})
        for number in numbers:
            place = start + len(places)
            places[f"cnry{place:02d}"] = f"{name} {{{number}}}"
            text = text.replace(f"{{{number}}}", canary(place))
        return text if name.endswith(".json") else text.replace("{{", "{").replace("}}", "}")

    for name, text in texts.items():
        if name.startswith("/"):
            files[name] = file_facts(name, filled(name, text), mode=0o600)
        else:
            before = commands[name].text if name in commands else ""
            whole = name != "docker:info"  # one object, which takes in what is added
            commands[name] = Section(
                before + filled(name, text) + "\n" if whole else before.replace("{", "{" + filled(name, text), 1)
            )
    if base.startswith("ubuntu2404-k3s"):
        services = commands["services"].text
        begin = services.index("Id=k3s.service")
        commands["services"] = Section(services[:begin] + filled("services", EXEC))
    commands["sources"] = Section("".join(f"{n}\n" for n in files if n.startswith(("/etc/apt/sou", "/etc/yum"))))
    return encode(Sections(commands, files)), places


HOSTS = {
    "docker": hidden(DOCKER, "debian12-l4", 0),
    "kubernetes": hidden(KUBERNETES, "ubuntu2404-k3s-l4", 50),
}
WORDS = [
    ["detect"],
    ["plan"],
    ["plan", "--explain"],
    ["plan", "--driver", "580", "--cdi"],
    ["plan", "--cdi", "--no-hold"],
    ["setup", "--yes"],
    ["check"],
    ["runtime", "show"],
    ["undo", "--yes"],
]
LOGGED = [
    'Nov 23 dockerd[900]: level=warning msg="login to r.example" password={0}',
    'Nov 23 dockerd[900]: time="x" level=info msg="proxy http://me:{0}@proxy:3128"',
    "Nov 23 k3s[77]: server started: /usr/local/bin/k3s server --token {0} --disable traefik",
    "Nov 23 kubelet[78]: Authorization: Bearer {0}",
    'Nov 23 containerd[1]: config {{"auths": {{"r.example": {{"auth": "{0}"}}}}}}',
    "Nov 23 sshd[1]: AWS_SECRET_ACCESS_KEY={0} was in the environment",
]
FORMS = [[], ["-v"], ["-vv"], ["-q"], ["--json"], ["--format", "jsonl"]]


def said(words: Iterable[str]) -> str:
    """What one command line prints, on both streams."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="surrogateescape")
    err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="surrogateescape")
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        main(list(words))
    texts = []
    for stream in (out, err):
        stream.flush()
        buffer = stream.buffer
        assert isinstance(buffer, io.BytesIO)
        texts.append(buffer.getvalue().decode("utf-8", "surrogateescape"))
    return "\n".join(texts)


def sings(text: str, places: dict[str, str]) -> dict[str, str]:
    """The canaries in a text, by place."""
    return {places.get(found, found): text[max(0, text.find(found) - 60) :][:100] for found in CANARY.findall(text)}


@pytest.fixture(params=HOSTS)
def host(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, dict[str, str]]:
    stream, places = HOSTS[request.param]
    path = tmp_path / "host.txt"
    path.write_bytes(stream)
    return path, places


def test_more_than_25_places_hold_one() -> None:
    places = [place for _, places in HOSTS.values() for place in places.values()]
    assert len(places) > 25
    for stream, expected in HOSTS.values():
        assert set(CANARY.findall(stream.decode())) == set(expected)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: " ".join(form) or "text")
@pytest.mark.parametrize("words", WORDS, ids=" ".join)
def test_no_verb_prints_one(words: list[str], form: list[str], host: tuple[Path, dict[str, str]]) -> None:
    path, places = host
    text = said([*words, "--recorded", str(path), *form])
    assert text.strip()
    assert "internal error" not in text
    assert sings(text, places) == {}


def hashes(stream: bytes) -> set[str]:
    """Twelve digits of the hash of each file that holds a canary, as it is, and of the whole stream."""
    files = [file for file in decode(stream).files.values() if file.text is not None and CANARY.search(file.text)]
    assert files
    return {hashlib.sha256(stream).hexdigest()[:12], *(file.sha256[:12] for file in files if file.sha256)}


@pytest.mark.parametrize("form", [["--json"], ["--format", "jsonl"], ["-vv"]], ids=" ".join)
@pytest.mark.parametrize("words", WORDS, ids=" ".join)
def test_no_verb_prints_a_hash_by_which_one_could_be_guessed(
    words: list[str], form: list[str], host: tuple[Path, dict[str, str]]
) -> None:
    path, _ = host
    text = said([*words, "--recorded", str(path), *form])
    assert [found for found in hashes(path.read_bytes()) if found in text] == []


def test_what_is_planned_for_files_that_hold_some_is_shown_masked(tmp_path: Path) -> None:
    """Without this the others could pass since nothing was planned."""
    path = tmp_path / "host.txt"
    path.write_bytes(HOSTS["docker"][0])
    text = said(["plan", "-vv", "--recorded", str(path)])
    assert "MASKED" in text
    plan = json.loads(said(["plan", "--json", "-q", "--recorded", str(path)]))["hosts"][0]["plan"]
    puts = [action for step in plan["steps"] for action in step["actions"] if action["kind"] == "put_file"]
    texts = {put["path"]: put["text"] for put in puts}
    assert json.loads(texts["/etc/docker/daemon.json"])["log-opts"]["gelf-pass"] == "MASKED"
    assert "default_runtime_name" in texts["/etc/containerd/config.toml"]


@pytest.mark.parametrize("flag", ["--output", "--record"])
def test_no_file_that_is_written_holds_one(flag: str, host: tuple[Path, dict[str, str]], tmp_path: Path) -> None:
    path, places = host
    written = tmp_path / "written"
    text = said(["detect", "--recorded", str(path), "--json", flag, str(written)])
    assert sings(text, places) == {}
    assert sings(written.read_text(), places) == {}
    assert written.stat().st_mode & 0o777 == 0o600


def test_no_bundle_holds_one(host: tuple[Path, dict[str, str]], tmp_path: Path) -> None:
    path, places = host
    written = tmp_path / "b.tgz"
    text = said(["check", "--recorded", str(path), "--bundle", str(written)])
    assert sings(text, places) == {}
    assert written.stat().st_mode & 0o777 == 0o600
    with tarfile.open(written) as tar:
        read = {member.name: tar.extractfile(member) for member in tar}
        files = {name: file.read().decode() for name, file in read.items() if file}
    assert {name.rpartition("/")[2] for name in files} >= {"MANIFEST", "facts.txt", "report.txt", "report.json"}
    assert {name: sings(text, places) for name, text in files.items() if sings(text, places)} == {}


@pytest.mark.parametrize("line", LOGGED)
def test_no_log_in_a_bundle_holds_one(line: str) -> None:
    """What daemons and their users write into a unit's log."""
    log = Entry("units/docker.service.log", "a log", line.format(canary(97)) + "\n")
    packed = bundle([HostFiles("a", (log,), (("x.log", line.format(canary(98))),))], at="", at_s=0, version="")
    with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
        text = "".join(file.read().decode() for member in tar if (file := tar.extractfile(member)))
    assert "MASKED" in text
    assert sings(text, {}) == {}


def test_a_masked_recording_plans_the_same_steps(host: tuple[Path, dict[str, str]]) -> None:
    path, _ = host
    stream = path.read_bytes()
    plans = []
    for each in (stream, masked(stream, mask_host=False)):
        try:
            plan = make_plan(assemble(each, "a"), Spec(), load_catalog())
            plans.append([(step.id, step.title) for step in plan.steps])
        except GpunodeError as error:
            plans.append([(type(error).__name__, error.problem)])
    assert plans[0] == plans[1]
    assert masked(masked(stream, mask_host=False), mask_host=False) == masked(stream, mask_host=False)


def test_the_hash_in_a_recording_is_of_its_masked_text(host: tuple[Path, dict[str, str]]) -> None:
    path, _ = host
    before, after = decode(path.read_bytes()), decode(masked(path.read_bytes(), mask_host=False))
    for name, file in before.files.items():
        if file.text is not None and CANARY.search(file.text):
            assert after.files[name].sha256 != file.sha256
            assert after.files[name].sha256 == file_facts(name, after.files[name].text or "").sha256


def test_a_saved_plan_keeps_what_setup_needs_and_a_printed_one_is_refused(tmp_path: Path) -> None:
    stream, places = HOSTS["docker"]
    recorded = tmp_path / "host.txt"
    recorded.write_bytes(stream)
    saved, printed = tmp_path / "saved", tmp_path / "printed"
    said(["plan", "--recorded", str(recorded), "--save", str(saved)])
    said(["plan", "--recorded", str(recorded), "--json", "--output", str(printed)])
    assert saved.stat().st_mode & 0o777 == 0o600
    assert len(sings(saved.read_text(), places)) > 9
    real = {file.sha256 for file in decode(stream).files.values()}
    actions = [a for step in json.loads(saved.read_text())["plan"]["steps"] for a in step["actions"]]
    expected = {a["expect_sha256"] for a in actions if a["kind"] == "put_file"} - {None}
    assert expected
    assert expected <= real
    assert sings(printed.read_text(), places) == {}
    text = said(["setup", "--plan", str(printed), "--recorded", str(recorded)])
    assert "--json printed it, for reading" in " ".join(text.split())
    assert "--save" in text


def test_no_run_log_and_no_copy_of_the_journal_holds_one(
    host: tuple[Path, dict[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, places = host
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    facts = assemble(path.read_bytes(), "a")
    puts = tuple(PutFile(name, file.text) for name, file in facts.files.items() if file.text)
    log = RunLog("r", complain=print)
    log.write("a", host_line("setup", HostOutcome("a", ExitCode.DONE, facts=facts)))
    for put in puts:
        log.write("a", json.dumps({"kind": "put", "path": put.path, "text": put.text}) + "\n")
    for line in decode(path.read_bytes()).text("journal").splitlines():
        log.write("a.journal", line + "\n")
    log.write("a.journal", '{"kind": "command", "argv": ["k3s", "--token", "cnry99"], "text": "password=cnry98"}\n')
    text = "".join(file.read_text() for file in (tmp_path / "state").rglob("*.jsonl"))
    assert text.count("\n") > 3
    assert sings(text, places) == {}
    for line in text.splitlines():
        json.loads(line)


def test_the_hosts_own_journal_keeps_the_reason_of_a_failure_and_no_secret_in_it() -> None:
    """Its lines are root's to read, and come there in a command line, which is everybody's."""
    journal = Journal("r")
    why = "systemctl restart ended with code 1: refused: password=cnry01 at https://me:cnry02@r.example/"
    journal.add("step-end", step="s", status="failed", error=why)
    journal.add("step-end", step="s", status="done", error="")
    first, second = (json.loads(line) for line in journal.pending().splitlines())
    assert (
        first["error"] == "systemctl restart ended with code 1: refused: password=MASKED at https://MASKED@r.example/"
    )
    assert (second["status"], second["error"]) == ("done", "")


@pytest.mark.parametrize("flags", [["--diff"], ["--diff", "--json"], ["--dry-run", "--json"], ["--dry-run", "--diff"]])
@pytest.mark.parametrize("engine", ["docker", "containerd"])
def test_runtime_configure_shows_none(engine: str, flags: list[str], tmp_path: Path) -> None:
    stream, places = HOSTS["docker"]
    name = {"docker": "/etc/docker/daemon.json", "containerd": "/etc/containerd/config.toml"}[engine]
    config = tmp_path / Path(name).name
    config.write_text(decode(stream).files[name].text or "")
    text = said(["runtime", "configure", engine, "--config", str(config), "--daemon-version", "1.7.24", *flags])
    assert "internal error" not in text
    assert name.rpartition("/")[2] in text
    assert sings(text, places) == {}


@pytest.mark.parametrize(
    "words",
    [
        ["--proxy", "http://me:cnry01@proxy:3128"],
        ["--proxy", "me:cnry01@proxy"],
        ["--proxy", "http://me:cnry/cnry01@proxy"],
        ["--mirror", "http://me:cnry01@mirror/"],
        ["--mirror", "https://me:cnry01@mirror/"],
    ],
    ids=" ".join,
)
def test_what_was_typed_wrongly_is_not_repeated_with_its_password(words: list[str], tmp_path: Path) -> None:
    recorded = str(EXAMPLES / "debian12-l4")
    assert "cnry01" not in said(["plan", "--recorded", recorded, *words])
    spec = tmp_path / "spec.yaml"
    spec.write_text(f"{words[0].removeprefix('--')}: {words[1]}\n")
    assert "cnry01" not in said(["plan", "--recorded", recorded, "--spec", str(spec)])


def test_an_error_names_none() -> None:
    error = GpunodeError(
        "http://me:cnry01@host/ failed", evidence="apt said: password=cnry02", remedy="try --token cnry03"
    )
    assert "cnry" not in error_json(error)


def test_the_examples_that_are_shipped_hold_none() -> None:
    """Masking leaves each as it is."""
    for directory in sorted(EXAMPLES.iterdir())[:80]:
        stream = (directory / "facts.txt").read_bytes()
        assert masked(stream, mask_host=False) == stream, directory.name
