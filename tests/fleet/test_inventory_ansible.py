"""Ansible's inventories: as ansible-core 2.19 reads them, or refused by name. Never somebody else is reached."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fleet.inventories import hosts_of, named, read, refused

INI = """\
lonely.example ansible_port=2200
mail.example:2222 ansible_user=root   # a comment

[web]
www[01:03].example ansible_ssh_private_key_file=/keys/web
web-[a:c] ansible_host=10.0.0.9
[db:vars]   # before its group
ansible_user="postgres"
ansible_port = 2201
[db]
db[1:5:2]
www01.example
[dc:children]
web
db
[dc:vars]
ansible_user=dcuser
[all:vars]
ansible_user=fallback
ansible_python_interpreter=/usr/bin/python3
"""
# name -> address, user, port, key: what `ansible-inventory --list` of ansible-core 2.19.14 says of each host of INI
TOLD = {
    "lonely.example": ("lonely.example", "fallback", 2200, None),
    "mail.example": ("mail.example", "root", 2222, None),
    "www01.example": ("www01.example", "postgres", 2201, "/keys/web"),
    "www02.example": ("www02.example", "dcuser", None, "/keys/web"),
    "www03.example": ("www03.example", "dcuser", None, "/keys/web"),
    "web-a": ("10.0.0.9", "dcuser", None, None),
    "web-b": ("10.0.0.9", "dcuser", None, None),
    "web-c": ("10.0.0.9", "dcuser", None, None),
    "db1": ("db1", "postgres", 2201, None),
    "db3": ("db3", "postgres", 2201, None),
    "db5": ("db5", "postgres", 2201, None),
}
YAML = """\
all:
  vars: {ansible_user: ops}
  hosts:
    plain:
  children:
    h100:
      hosts:
        gpu[01:02].example:
        x[a:b]: {ansible_host: 10.1.1.1, other: {deep: [1]}}
      vars: {ansible_user: root}
    rack:
      children:
        h100:
        a100: {hosts: single.example}
"""
JSON = """\
{"_meta": {"hostvars": {"gpu01": {"ansible_host": "10.0.0.1", "ansible_port": 2222, "x": {"__ansible_unsafe": "y"}}}},
 "all": {"children": ["ungrouped", "gpu"], "vars": {"ansible_user": "ops"}}, "gpu": {"hosts": ["gpu01", "gpu02"]}}
"""


def told(directory: Path, text: str) -> dict[str, tuple[object, ...]]:
    found = named(directory, text)
    key = {name: str(one.identity) if one.identity else None for name, one in found.items()}
    return {name: (one.target.host, one.target.user, one.target.port, key[name]) for name, one in found.items()}


def _write(directory: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text)


def test_ini_is_read_as_ansible_reads_it(tmp_path: Path) -> None:
    assert told(tmp_path, INI) == TOLD


def test_yaml_is_read_as_ansible_reads_it(tmp_path: Path) -> None:
    assert told(tmp_path, YAML) == {
        "plain": ("plain", "ops", None, None),
        "gpu01.example": ("gpu01.example", "root", None, None),
        "gpu02.example": ("gpu02.example", "root", None, None),
        "xa": ("10.1.1.1", "root", None, None),
        "xb": ("10.1.1.1", "root", None, None),
        "single.example": ("single.example", "ops", None, None),
    }
    assert read(tmp_path, YAML).below("rack") == {"gpu01.example", "gpu02.example", "xa", "xb", "single.example"}
    assert read(tmp_path, YAML).below("ungrouped") == {"plain"}


def test_what_ansible_inventory_lists_is_read(tmp_path: Path) -> None:
    assert told(tmp_path, JSON) == {"gpu01": ("10.0.0.1", "ops", 2222, None), "gpu02": ("gpu02", "ops", None, None)}


@pytest.mark.parametrize(
    ("text", "beside", "users"),
    [
        ("a\nb\n[g]\na\n[ungrouped:vars]\nansible_user=lonely\n", "", [None, "lonely"]),
        ("[ungrouped]\na\nb\n[g]\na\n[ungrouped:vars]\nansible_user=lonely\n", "", [None, "lonely"]),
        (
            "all: {hosts: {a: , b: }}\nungrouped: {vars: {ansible_user: lonely}}\ng: {hosts: {a: }}\n",
            "",
            [None, "lonely"],
        ),
        ("[all]\na\nb\n[g]\na\n", "ansible_user: beside\n", [None, "beside"]),
        ("[g]\na\nb\n", "ansible_user: beside\n", [None, None]),
    ],
)
def test_ungrouped_has_the_hosts_that_no_other_group_has(
    tmp_path: Path, text: str, beside: str, users: list[str | None]
) -> None:
    """As ansible-inventory 2.19 lists them: what a file says of `ungrouped` is not said of a host with a group."""
    _write(tmp_path, {"group_vars/ungrouped.yml": beside})
    found = named(tmp_path, text)
    assert [found[name].target.user for name in "ab"] == users


@pytest.mark.parametrize(
    ("value", "user"),
    [
        (r"'CORP\\ann'", r"CORP\ann"),
        (r'"CORP\\ann"  # a comment', r"CORP\ann"),
        (r"CORP\ann", r"CORP\ann"),
        (r"'CORP\dave'", r"CORP\dave"),
        (r"'ann\x41'", "annA"),
        (r"'ann\x'", r"'ann\x'"),
        (r"'\ud800'", r"'\ud800'"),
        (r"'o\'neill'", "o'neill"),
    ],
)
def test_escapes_in_quotes_are_read_as_ansible_reads_them(tmp_path: Path, value: str, user: str) -> None:
    """As ansible-inventory 2.19 lists it: a value in quotes is a text of Python's, else it stays as it is."""
    assert named(tmp_path, f"[g]\na\n[g:vars]\nansible_user={value}\n")["a"].target.user == user


@pytest.mark.parametrize(
    ("text", "beside"),
    [
        ("all: {hosts: {a: {ansible_user: }}, vars: {ansible_user: ops}}\n", ""),
        ("g: {hosts: {a: }, vars: {ansible_user: null}}\nall: {vars: {ansible_user: ops}}\n", ""),
        ("g: {hosts: {a: }, vars: {ansible_user: ops}}\n", "ansible_user:\n"),
        ('{"_meta": {"hostvars": {"a": {"ansible_user": null}}}, "g": {"hosts": ["a"], "vars": {"ansible_user": "x"}}}',
         ""),
        ("g: {hosts: {a: {ansible_password: }}}\n", "ansible_ssh_common_args:\n"),
    ],
)  # fmt: skip
def test_null_takes_back_what_is_said_farther_away(tmp_path: Path, text: str, beside: str) -> None:
    """As ansible-core 2.19 takes it (lib/ansible/config/manager.py): a variable that is null is not there."""
    _write(tmp_path, {"group_vars/g.yml": beside})
    assert named(tmp_path, text)["a"].target.user is None


def test_older_names_of_variables_count(tmp_path: Path) -> None:
    text = "a ansible_ssh_host=10.0.0.1 ansible_ssh_user=ann ansible_ssh_port=22 ansible_private_key_file=/k\n"
    assert told(tmp_path, text) == {"a": ("10.0.0.1", "ann", 22, "/k")}


@pytest.mark.parametrize(
    ("args", "jump"),
    [
        ("-J bastion", "bastion"),
        ("-Jann@bastion:2222,inner", "ann@bastion:2222,inner"),
        ("-o ProxyJump=bastion -C -o ControlPersist=60s", "bastion"),
        ('-o "ProxyJump bastion"', "bastion"),
        ('-o ProxyCommand="ssh -W %h:%p -q ann@bastion -p 2222"', "ann@bastion:2222"),
        ("-oProxyCommand='/usr/bin/ssh -qW [%h]:%p -l ann bastion'", "ann@bastion"),
        ("-o ProxyCommand=none", "none"),
        ("-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -qv", None),
    ],
)
def test_the_jump_host_in_the_arguments_of_ssh_is_gone_through(tmp_path: Path, args: str, jump: str | None) -> None:
    quoted = args.replace('"', '\\"')
    (one,) = named(tmp_path, f'gpu01 ansible_ssh_common_args="{quoted}"\n').values()
    assert one.jump == jump


def test_what_is_not_read_is_said(tmp_path: Path) -> None:
    text = (
        "a ansible_become=no ansible_become_flags=-H ansible_ssh_common_args='-o StrictHostKeyChecking=no -C'\n"
        "b ansible_host_key_checking=false\nc ansible_python_interpreter=/x colour=red ansible_become=true\n"
    )
    tree = read(tmp_path, text)
    hosts_of(tree)
    assert [note.partition(" is not read")[0] for note in tree.notes] == [
        "ansible_become",
        "ansible_become_flags",
        "-o StrictHostKeyChecking=no of ansible_ssh_common_args",
        "-C of ansible_ssh_common_args",
        "ansible_host_key_checking",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a ansible_connection=local\n", "a: ansible_connection is 'local'"),
        ("a ansible_connection=winrm\n", "a: ansible_connection is 'winrm'"),
        ("a ansible_become_method=su\n", "ansible_become_method is 'su'"),
        ("a ansible_become_user=oracle\n", "ansible_become_user is 'oracle'"),
        ("a ansible_shell_type=powershell\n", "ansible_shell_type is 'powershell'"),
        ("a ansible_ssh_executable=/opt/ssh\n", "ansible_ssh_executable is nothing that gpunode can do"),
        ("a ansible_paramiko_proxy_command=x\n", "ansible_paramiko_proxy_command is nothing"),
        ("a ansible_ssh_common_args='-o ProxyCommand=\"nc %h %p\"'\n", "'-o ProxyCommand=nc %h %p', which"),
        ("a ansible_ssh_common_args='-o ProxyCommand=\"ssh -W other:22 b\"'\n", "which gpunode cannot honour"),
        ("a ansible_ssh_extra_args='-o HostName=b'\n", "ansible_ssh_extra_args has '-o HostName=b'"),
        ("a ansible_ssh_extra_args='-l root'\n", "has '-l root'"),
        ("a ansible_ssh_extra_args='-F other'\n", "has '-F other'"),
        ("a ansible_ssh_common_args='-J x' ansible_ssh_extra_args='-J y'\n", "where another variable has 'x'"),
        ("a ansible_ssh_common_args='\"'\n", "has '\"', which gpunode cannot honour"),
        (f"a ansible_ssh_extra_args=-{'q' * 4096}\n", "ansible_ssh_extra_args has '-qqq"),
        ("a ansible_host={{ip}}\n", "a: ansible_host is a template ('{{ip}}')"),
        ("a ansible_host=b ansible_ssh_host=c\n", "ansible_ssh_host is 'c', where another variable has 'b'"),
        ("a ansible_host=root@b\n", "a: address: 'root@b' is more than an address"),
        ("a ansible_port=ssh\n", "a: port: port 'ssh' does not exist"),
        ("a ansible_user='x y'\n", "a: user: 'x y' is not a user"),
        ("a ansible_user=-oProxyCommand=x\n", "is not a user"),
        ("a ansible_ssh_common_args='-J -x'\n", "jump: '-x' is not a host"),
        ("[g]\na:22\na:2222\n", "line 3: a: ansible_port is '2222', and '22' on line 2"),
        ("[a]\nx\n[b]\nx\n[a:vars]\nansible_user=u\n[b:vars]\nansible_user=v\n", "'u' by group a and 'v' by group b"),
        ("[a:children]\nb\n[b:children]\na\n", "groups are each other's children: "),
        ("[a:children]\nnosuch\n", "group a has a child 'nosuch', and there is no such group"),
        ("[gup:vars]\nansible_user=root\n[gpu]\nx\n", "line 1: [gup:vars] is of a group that is not there"),
        ("[gpu:hsots]\nx\n", "[gpu:hsots] is none of hosts, children and vars"),
        ("[g p u]\nx\n[b]\ny\n", "line 1: '[g p u]' is no heading"),
        ("[a]\nx y\n", "line 2: x: a word behind it is not KEY=VALUE"),
        ("[a]\nx 'y\n", "line 2: 'x' and what follows it cannot be read"),
        ("[a:vars]\nx\n[a]\nh\n", "line 2: a line of [a:vars] that is not KEY=VALUE"),
        ("g:\n  hosts: [a]\n  vars: {}\n", "hosts is a mapping in Ansible's inventories"),
        ("all: {hosts: {a: }}\ng: {hsots: {b: }}\n", "is no inventory that gpunode knows"),
        ("g: {hosts: {a: 5}}\n", "a: variables are a mapping"),
        ('{"g": {"hosts": ["a"], "children": [1]}}', "group g: children is not a list of names"),
        ('{"g": {"hosts": ["a"]}, "g": {"hosts": ["b"]}}', "stands twice"),
    ],
)  # fmt: skip
def test_what_would_reach_somebody_else_is_refused_by_name(tmp_path: Path, text: str, said: str) -> None:
    assert said in refused(tmp_path, text)


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("ansible_become_password", "--become-pass-file"),
        ("ansible_become_pass", "--become-pass-file"),
        ("ansible_sudo_pass", "--become-pass-file"),
        ("ansible_password", "a key"),
        ("ansible_ssh_pass", "a key"),
        ("ansible_ssh_private_key_passphrase", "a key"),
        ("ansible_private_key", "a key"),
    ],
)
@pytest.mark.parametrize(
    "text",
    ["x {}=hunter2\n", "[all:vars]\n{}='hunter2'\n[g]\nx\n", "g: {{hosts: {{x: {{{}: hunter2}}}}}}\n",
     '{{"_meta": {{"hostvars": {{"x": {{"{}": "hunter2"}}}}}}, "g": {{"hosts": ["x"]}}}}'],
    ids=["INI host", "INI group", "YAML", "JSON"],
)  # fmt: skip
def test_secrets_are_refused_by_name_and_never_shown(tmp_path: Path, text: str, name: str, instead: str) -> None:
    said = refused(tmp_path, text.format(name))
    assert f"{name} is a secret, and gpunode takes none from an inventory" in said
    assert instead in said
    assert "hunter2" not in said


@pytest.mark.parametrize(
    "text",
    [
        "[g]\nx ansible_password=hunter 2hunter2\n",
        "[g]\nx ansible_password='hunter2\n",
        "[g]\nx\n[g:vars]\nansible_password: hunter2\n",
    ],
)
def test_a_line_that_cannot_be_read_is_not_quoted(tmp_path: Path, text: str) -> None:
    assert "hunter2" not in refused(tmp_path, text)


@pytest.mark.parametrize(
    "text",
    [
        "g:\n  hosts: {a: }\n  vars:\n    ansible_user: !vault |\n      $ANSIBLE_VAULT;1.1;AES256\n      3132\n",
        "g:\n  hosts: {a: }\n  vars:\n    token: !vault |\n      $ANSIBLE_VAULT;1.1;AES256\n      3132\n",
        "g:\n  hosts: {a: }\n  vars:\n    deep: {token: !vault x}\n",
        '{"g": {"hosts": ["a"], "vars": {"token": {"__ansible_vault": "$ANSIBLE_VAULT;1.1"}}}}',
    ],
    ids=["of a variable that counts", "of any other", "inside of one", "as --list has it"],
)
def test_what_a_vault_encrypted_is_refused(tmp_path: Path, text: str) -> None:
    assert "is encrypted by ansible-vault" in refused(tmp_path, text)


def test_what_is_wrong_with_a_host_that_was_not_chosen_is_nobodys_trouble(tmp_path: Path) -> None:
    text = "localhost ansible_connection=local\n[gpu]\ngpu01\n"
    assert list(named(tmp_path, text, "gpu")) == ["gpu01"]
    assert "ansible_connection" in refused(tmp_path, text)


# ---- group_vars and host_vars


def test_files_beside_an_inventory_count_as_they_do_for_ansible(tmp_path: Path) -> None:
    """As ansible-inventory 2.19.14 lists it: a file of any group outweighs the inventory's own group variables."""
    files = {
        "group_vars/all.yml": "ansible_user: gvall\nansible_port: 77\n",
        "group_vars/dc/b.yml": "ansible_user: fromdc\n",
        "group_vars/dc/a.yaml": "ansible_user: fromdc0\nsecret: x\n",
        "group_vars/web.json": '{"ansible_ssh_private_key_file": "/k"}',
        "group_vars/nosuch.yml": "ansible_user: nobody\n",
        "host_vars/db3": "ansible_host: 1.2.3.4\n",
        "host_vars/mail.example.yml": "ansible_port: 88\n",
    }
    _write(tmp_path, files)
    found = told(tmp_path, INI)
    assert found["db3"] == ("1.2.3.4", "fromdc", 77, None)
    assert found["mail.example"] == ("mail.example", "root", 88, None)
    assert found["web-a"] == ("10.0.0.9", "fromdc", 77, "/k")
    assert found["lonely.example"] == ("lonely.example", "gvall", 2200, None)


ADDRESS = "ansible_host: {}\n"


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        (["gpu07.yml"], "gpu07/main.yml"),
        (["gpu07.yaml", "gpu07.json"], "gpu07.yml"),
        (["gpu07.yml/stale.txt", "gpu07.yaml"], "gpu07.yml/main"),
        (["gpu07/10-site/a.yml"], "gpu07/20.yml"),
        (["gpu07/10.yml"], "gpu07/20-site/a.yml"),
        (["gpu07/z.yml~", "gpu07/z~/a.yml", "gpu07/.z.yml", "gpu07/.git/config", "gpu07/z.d/a.yml"], "gpu07/main.yml"),
        (["gpu07/z.", "gpu07/z.txt", "gpu07/z.YML"], "gpu07/main.yml"),
    ],
)
def test_a_file_that_ansible_does_not_read_says_nothing(tmp_path: Path, wrong: list[str], right: str) -> None:
    """As ansible-inventory 2.19 has it: the first of a name's files, and those below a directory in one order."""
    said = {name: ADDRESS.format("10.0.0.99") for name in wrong} | {right: ADDRESS.format("10.0.0.7")}
    _write(tmp_path / "host_vars", said)
    assert told(tmp_path, "[gpu]\ngpu07\n") == {"gpu07": ("10.0.0.7", None, None, None)}


def test_what_is_no_text_is_no_trouble_where_ansible_does_not_read_it(tmp_path: Path) -> None:
    _write(tmp_path / "group_vars" / "gpu", {"main.yml": "ansible_user: root\n"})
    (tmp_path / "group_vars" / "gpu" / ".DS_Store").write_bytes(b"\x00\x00\x00\x01Bud1\xff")
    assert told(tmp_path, "[gpu]\ngpu07\n") == {"gpu07": ("gpu07", "root", None, None)}


def test_links_are_what_they_lead_to(tmp_path: Path) -> None:
    _write(tmp_path, {"site/a.yml": "ansible_user: root\n", "group_vars/gpu.yaml": "ansible_port: 2222\n"})
    (tmp_path / "group_vars" / "all").mkdir()
    (tmp_path / "group_vars" / "all" / "site").symlink_to(tmp_path / "site")
    (tmp_path / "group_vars" / "gpu.yml").symlink_to("gone")
    assert told(tmp_path, "[gpu]\ngpu07\n") == {"gpu07": ("gpu07", "root", 2222, None)}


@pytest.mark.parametrize("word", ["2001:db8::7", "[2001:db8::7]:22"])
def test_the_files_of_an_ipv6_host_have_its_address_for_a_name(tmp_path: Path, word: str) -> None:
    _write(tmp_path, {"host_vars/2001:db8::7.yml": "ansible_host: 10.0.0.7\nansible_port: 22\n"})
    assert told(tmp_path, f"[gpu]\n{word}\n") == {"[2001:db8::7]": ("10.0.0.7", None, 22, None)}


def test_a_plain_list_beside_them_is_an_inventory_of_ansible(tmp_path: Path) -> None:
    """An INI inventory without a heading looks like any list; Ansible reads it with what stands beside it."""
    text = "# gpu07, gpu08\n; a, b\ngpu07  # in rack 1, upper half\nroot@gpu[08:09]:22\n"
    plain = {"gpu07": ("gpu07", None, None, None), "root@gpu08:22": ("gpu08", "root", 22, None)}
    assert told(tmp_path, text.replace("08:09", "08-08")) == plain
    _write(tmp_path, {"group_vars/all.yml": "ansible_user: ops\n", "host_vars/gpu07.yml": "ansible_host: 10.0.0.7\n"})
    assert told(tmp_path, text) == {
        "gpu07": ("10.0.0.7", "ops", None, None),
        "gpu08": ("gpu08", "root", 22, None),
        "gpu09": ("gpu09", "root", 22, None),
    }
    assert told(tmp_path, "gpu07,gpu08\n") == {name: (name, None, None, None) for name in ("gpu07", "gpu08")}


def test_a_secret_beside_an_inventory_is_said_to_be_unread(tmp_path: Path) -> None:
    (tmp_path / "group_vars").mkdir()
    (tmp_path / "group_vars" / "all.yml").write_text("ansible_become_password: hunter2\nansible_user: root\n")
    (tmp_path / "group_vars" / "gpu.yml").write_text("$ANSIBLE_VAULT;1.1;AES256\n3132\n")
    tree = read(tmp_path, "[gpu]\ngpu01\n")
    assert hosts_of(tree)[0].target.user == "root"
    first, second = tree.notes
    assert "ansible_become_password in " in first
    assert "gpu.yml is encrypted by ansible-vault, and is not read" in second


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [\n", "cannot be read as YAML"),
        ("ansible_user: a\nansible_user: b\n", "'ansible_user' is there twice"),
        ("ansible_host: !vault x\n", "ansible_host is encrypted by ansible-vault, and says how gpu is reached"),
        ("#" * (256 * 1024 + 1), "is over 256 KiB"),
    ],
)
def test_a_file_beside_that_cannot_be_read_is_a_fault(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "group_vars").mkdir()
    (tmp_path / "group_vars" / "gpu.yml").write_text(text)
    assert said in refused(tmp_path, "[gpu]\ngpu01\n")


def test_a_link_to_a_file_system_is_not_walked_to_its_end(tmp_path: Path) -> None:
    (tmp_path / "group_vars").mkdir()
    (tmp_path / "group_vars" / "gpu").symlink_to("/")
    assert "has more than 2000 files" in refused(tmp_path, "[gpu]\ngpu01\n")


def test_links_that_go_in_circles_are_not_followed_to_their_end(tmp_path: Path) -> None:
    gpu = tmp_path / "group_vars" / "gpu"
    gpu.mkdir(parents=True)
    (gpu / "a").symlink_to(".")
    (gpu / "b").symlink_to(".")
    assert "has more than 2000 files" in refused(tmp_path, "[gpu]\ngpu01\n")
