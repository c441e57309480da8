"""A user of a GPU host with real daemons calls their own processes by the daemons' names, while root looks."""

from __future__ import annotations

import json
from pathlib import Path

from .host import Host
from .lab import Lab
from .product_runs import Controller, expect

USER, HOME = "nosudo", "/home/nosudo"
SECRET = "canary-7f3a of root"
# Started as "containerd", then another program stands there; "dockerd" names a file of root's, "crio" a pipe.
ATTACK = f"""
cd {HOME} && mkfifo pipe && for name in containerd dockerd crio; do
  cp /bin/sh $name
  case $name in dockerd) set -- --config-file /root/secret ;; crio) set -- --config {HOME}/pipe ;; *) set -- ;; esac
  ./$name -c 'sleep 100000; :' "$@" </dev/null >/dev/null 2>&1 &
  echo $! >pid-of-$name
done
for name in containerd dockerd crio; do
  until grep -qx $name /proc/$(cat pid-of-$name)/comm; do :; done
  rm $name
  printf '#!/bin/sh\\nid -u >>{HOME}/mark\\n' >$name
  chmod +x $name
done
chmod 777 .
"""


def attacked(lab: Lab) -> Host:
    host = lab.host("debian13", runtime="docker", files={"/root/secret": SECRET})
    host.nsrun("systemctl is-system-running --wait")
    done = host.run(ATTACK, user=USER)
    assert done.returncode == 0, done.stderr
    return host


def test_a_users_fakes_are_named_and_nothing_of_them_is_run_or_believed(lab: Lab, tmp_path: Path) -> None:
    host, me = attacked(lab), Controller("ssh", tmp_path)
    record = tmp_path / "facts"
    shown = " ".join(expect(me.gpunode(host, "detect", "--record", str(record)), 0).stdout.split())
    for verb in (("plan", "--only", "runtime"), ("check",), ("setup", "--yes", "--only", "runtime"), ("undo", "--yes")):
        me.gpunode(host, *verb)
    assert not host.exists(f"{HOME}/mark")
    assert SECRET not in record.read_text()
    for name in ("containerd", "dockerd", "crio"):
        pid = host.read(f"{HOME}/pid-of-{name}").strip()
        assert f"a process called {name} (pid {pid})" in shown
    engines = json.loads(expect(me.gpunode(host, "detect", "--json"), 0).stdout)["hosts"][0]["facts"]["runtimes"]
    assert [(e["name"], e["active"]) for e in engines if e["name"] in ("docker", "crio")] == [("docker", True)]
    assert host.nsrun("ls -d /run/.gpunode-probe.*").returncode != 0
