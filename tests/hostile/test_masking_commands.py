"""Programs whose short flags say a secret: none is left, however the command line is written; ports and users stay."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable

import pytest
import yaml

from gpunode.masking import MASK, mask_argv, masked

SECRET = "hunter2"
SECRETS = {
    "curl -u": "curl -u user:hunter2 http://x",
    "curl -u behind other flags": "/usr/bin/curl -fsSL -o /x -u user:hunter2",
    "curl -uuser:PW": "curl -uuser:hunter2 http://x",
    "curl, letters together": "curl -sSfu user:hunter2 http://x",
    "curl, all together": "curl -sSuuser:hunter2 http://x",
    "curl --user": "curl --user user:hunter2 http://x",
    "curl --user=": "curl --user=user:hunter2 http://x",
    "curl -U": "curl -x http://proxy:3128 -U user:hunter2 http://x",
    "curl --proxy-user": "curl --proxy-user user:hunter2",
    "curl's address names other programs": "curl http://x/docker/login -u user:hunter2",
    "curl behind sudo": "sudo -u root curl -u user:hunter2 http://x",
    "curl in a container": "docker run --rm -p 8080:80 curlimages/curl:8.1 -u user:hunter2 http://x",
    "mysql -pPW": "mysql -u root -phunter2 db",
    "mysqldump -pPW": "mysqldump -uroot -phunter2 --all-databases",
    "mysql in a container": "docker exec -u 1000 db mysql -phunter2",
    "mariadb -pPW": "mariadb -phunter2",
    "sshpass -p": "sshpass -p hunter2 ssh -p 2222 gpu1",
    "sshpass -pPW": "/usr/bin/sshpass -v -phunter2 ssh gpu1",
    "docker login -p": "docker login -p hunter2",
    "docker login -u -p": "docker --config /x login -u x -p hunter2 r.example",
    "docker login -pPW": "docker login -ux -phunter2 r.example",
    "docker login -p=PW": "docker login -p=hunter2 r.example",
    "docker login, then a container": "docker login -p hunter2 r.example ; docker run -p 8080:80 a",
    "podman login -p": "sudo podman login -u x -p hunter2 r.example",
    "nerdctl login -p": "nerdctl -n k8s.io login -p hunter2",
    "helm registry login -p": "helm registry login r.example -u x -p hunter2",
    "ctr images pull -u": "ctr -n k8s.io images pull -u user:hunter2 r.example/a:1",
    "ctr images pull --user": "ctr i pull --user user:hunter2 r.example/a:1",
    "ctr images pull --user=": "k3s ctr images pull --user=user:hunter2 r.example/a:1",
    "crictl pull --creds": "crictl pull --creds user:hunter2 r.example/a:1",
    "crictl pull --auth=": "crictl pull --auth=hunter2 r.example/a:1",
    "skopeo --creds": "skopeo inspect --creds user:hunter2 docker://r.example/a",
    "skopeo --src-creds": "skopeo copy --src-creds=user:hunter2 docker://a docker://b",
    "skopeo --dest-creds": "skopeo copy docker://a --dest-creds user:hunter2 docker://b",
    "helm --password": "helm repo add x https://x --username u --password hunter2",
    "redis-cli -a": "redis-cli -h db -a hunter2 ping",
    "wget --password=": "wget --user=u --password=hunter2 http://x",
    "ipmitool -P": "ipmitool -I lanplus -U root -P hunter2 power status",
    "k3s agent -t": "/usr/local/bin/k3s agent -t hunter2",
}
STAYS = {
    "a port": "docker run -d -p 8080:80 nginx",
    "a port and an address": "podman run -p127.0.0.1:8080:80/tcp nginx",
    "a port of a container that is called mysql": "docker run --name mysql -p3306:3306 -u 1000:1000 mysql:8",
    "the user of a container": "docker run -u 1000 --user 1000:1000 -p 80:80 ubuntu",
    "the user of a container that is called curl": "docker run --name curl -u 1000:1000 -p 80:80 curl",
    "the user of a command": "docker exec -u 1000 db id -u",
    "the user of a task": "ctr run -u 1000:1000 --user root r.example/a:1 x",
    "a user's number": "curl -u 1000 http://x",
    "mysql asks": "mysql -u root -p db",
    "a port of mysql": "mysql -P 3306 -h db -u root",
    "who logs in": "docker login -u someone r.example",
    "from the standard input": "docker login --password-stdin r.example",
    "a port of ssh": "sshpass -e ssh -p 2222 gpu1",
    "a terminal in a pod": "k3s kubectl exec -t pod",
}
# Of a shell: where another command begins can be told where nothing is quoted, and not among words alone.
SHELL_STAYS = {
    "another command's directory": "docker login -u x r.example && mkdir -p /data",
    "another command's user": "curl -fsSL http://x | sudo -u someone tee /x",
    "a directory": "mkdir -p /etc/docker && cp -p a /etc/docker/login",
}


def arg_lines(line: str) -> str:
    return "".join(f"arg={word}\n" for word in shlex.split(line))


def quoted(line: str) -> str:
    """Each word in quotes, as scripts have it that are careful."""
    return " ".join(f'"{word}"' for word in shlex.split(line))


FORMS: dict[str, Callable[[str], str]] = {
    "a line": lambda line: line,
    "a log": lambda line: f"12:00:01 it's root that ran: {line}\nx",
    "quoted words": quoted,
    "a unit's file": lambda line: f"[Service]\nExecStart={line}\nRestart=no\n",
    "a unit's file over lines": lambda line: "[Service]\nExecStart=" + " \\\n  ".join(line.split(" ")) + "\nA=b\n",
    "a script": lambda line: "#!/bin/sh\n" + " \\\n\t".join(line.split(" ")) + "\ntrue\n",
    "systemctl show": lambda line: f"ExecStart={{ path=/x ; argv[]={line} ; ignore_errors=no ; pid=0 }}",
    "a process": arg_lines,
    "sh -c of a process": lambda line: f"arg=sh\narg=-c\narg=cd /x; {line}\n",
    "sh -c '...'": lambda line: f"/bin/sh -c 'set -e; {line}' x",
    'sh -c "..."': lambda line: f'/bin/sh -c "{line}"',
    "a unit's sh -c": lambda line: f"ExecStartPre=-/bin/sh -c '{line}'\n",
    "JSON, words": lambda line: json.dumps({"cmd": shlex.split(line), "x": [1]}),
    "JSON, one string": lambda line: json.dumps({"cmd": ["sh", "-c", line]}),
    "YAML, words": lambda line: yaml.safe_dump({"a": {"args": shlex.split(line)}}, width=1000),
    "YAML, quoted words": lambda line: "args:\n" + "".join(f'- "{word}"\n' for word in shlex.split(line)),
    "YAML, lists in a list": lambda line: yaml.safe_dump([shlex.split(line), ["x"]], width=1000),
    "YAML, words in brackets": lambda line: yaml.safe_dump(
        {"a": shlex.split(line)}, default_flow_style=True, width=1000
    ),
    "YAML, a string": lambda line: yaml.safe_dump({"runcmd": [f"sh -c '{line}'"]}, width=1000),
    "YAML, a script": lambda line: f"a:\n  content: |\n    set -e\n    {line}\nb: 1\n",
    "YAML, a script over lines": lambda line: "a: |\n  " + " \\\n    ".join(line.split(" ")) + "\nb: 1\n",
    "TOML, words": lambda line: f"x = {json.dumps(shlex.split(line))}\n",
    "TOML, a string": lambda line: f"x = '''\n{line}'''\n",
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("line", SECRETS.values(), ids=SECRETS)
def test_no_secret_of_a_command_is_left(line: str, form: str) -> None:
    text = FORMS[form](line)
    kind = "yaml" if form.startswith("YAML") else ""
    out = masked(text, kind)
    assert SECRET in text
    assert SECRET not in out
    assert MASK in out
    assert out.count("\n") == text.count("\n")
    assert masked(out, kind) == out
    if form.startswith("JSON"):
        json.loads(out)
    if form.startswith("YAML"):
        yaml.safe_load(out)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("line", STAYS.values(), ids=STAYS)
def test_what_people_need_to_see_stays(line: str, form: str) -> None:
    text = FORMS[form](line)
    assert masked(text, "yaml" if form.startswith("YAML") else "") == text


@pytest.mark.parametrize("line", SHELL_STAYS.values(), ids=SHELL_STAYS)
@pytest.mark.parametrize(
    "form", ["a line", "a log", "sh -c '...'", 'sh -c "..."', "JSON, one string", "YAML, a script"]
)
def test_what_is_another_commands_stays(line: str, form: str) -> None:
    assert masked(FORMS[form](line)) == FORMS[form](line)


@pytest.mark.parametrize("line", SECRETS.values(), ids=SECRETS)
def test_the_words_of_a_command_keep_their_number(line: str) -> None:
    words = shlex.split(line)
    for unquoted in (False, True):
        out = mask_argv(words, unquoted=unquoted)
        assert SECRET not in " ".join(out)
        assert len(out) == len(words)
        assert mask_argv(out, unquoted=unquoted) == out
    assert SECRET not in " ".join(mask_argv(["sh", "-c", f"cd /x && {line}"]))


@pytest.mark.parametrize("line", STAYS.values(), ids=STAYS)
def test_no_word_of_others_is_masked(line: str) -> None:
    assert mask_argv(shlex.split(line)) == tuple(shlex.split(line))


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("curl -u user:hunter2 http://x -o y", "curl -u MASKED http://x -o y"),
        ("curl -u 'user:hun hunter2' http://x", "curl -u 'MASKED' http://x"),
        ('curl -u user:"hun hunter2" http://x', "curl -u MASKED http://x"),
        ('curl -H "a; b" -u user:hunter2 http://x', 'curl -H "a; b" -u MASKED http://x'),
        ('sh -c "curl -u \\"user:hun hunter2\\" http://x"', 'sh -c "curl -u \\"MASKED\\" http://x"'),
        ('curl -u "user:a\\"hunter2" http://x', 'curl -u "MASKED" http://x'),
        ("mysql -p'hun hunter2' db", "mysql -p'MASKED' db"),
        ("sshpass -p hunter2 ssh -p 2222 gpu1", "sshpass -p MASKED ssh -p 2222 gpu1"),
        ("sshpass -p $'hun hunter2' ssh gpu1", "sshpass -p MASKED ssh gpu1"),
        ("(docker login -p hunter2)", "(docker login -p MASKED)"),
        ("`docker login -p hunter2`", "`docker login -p MASKED`"),
        ("ExecStart=/bin/sshpass -p hunter2 ssh gpu1", "ExecStart=/bin/sshpass -p MASKED ssh gpu1"),
        ("--token \\\n  hunter2", "--token \\\n  MASKED"),
        ('a: |\n  curl -H "a: b" -u user:hunter2 x\n', 'a: |\n  curl -H "a: b" -u MASKED x\n'),
        ('a: |\n  curl -u user:hunter2 -H "a: b" x\n', 'a: |\n  curl -u MASKED -H "a: b" x\n'),
        ('a: |\n  curl -u \\\n  "user:hunter2" x\n', 'a: |\n  curl -u \\\n  "MASKED" x\n'),
        ("a: |\n  k3s server --token \\\n  hunter2 \\\n  -x\n", "a: |\n  k3s server --token \\\n  MASKED \\\n  -x\n"),
        ('["curl", "-u", "user:hunter2", "x"', '["curl", "-u", "MASKED", "x"'),
    ],
)
def test_only_the_secret_goes(text: str, want: str) -> None:
    assert masked(text) == want
    assert masked(want) == want
