# Made by `gpunode export ansible`.
"""Runs the collection's gpunode on the host, which verifies it first."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import atexit
import hashlib
import json
import os
import shutil
import tempfile

from ansible_collections.gpunode.node.plugins.module_utils.carried import SHA256, SIZE

STATE = "/var/lib/gpunode/ansible"
PYTHONS = ["/usr/bin/python3"] + ["/usr/bin/python3.%d" % minor for minor in range(14, 9, -1)]
OLD = "import sys; sys.exit(sys.version_info < (3, 10))"
OWN = dict(_gpunode=dict(type="path"), _sha256=dict(type="str"))


class Gpunode(object):
    """gpunode, verified. Ends the module where it is not here, or is another."""

    def __init__(self, module):
        self.module = module
        if os.geteuid() != 0:
            module.fail_json(msg="gpunode runs as root: become: true")
        if module.params["_sha256"] != SHA256:
            module.fail_json(msg="the module is run by its action plugin alone, which brings gpunode")
        self.python = self._python()
        # Root's own, and gone at the end. Ansible's own is the login's, who could put other files there.
        self.private = tempfile.mkdtemp(prefix="gpunode-", dir="/var/tmp")
        atexit.register(shutil.rmtree, self.private, True)
        self.path = os.path.join(STATE, "gpunode-%s.pyz" % SHA256)
        if _intact(_bytes_of(self.path)):
            return
        brought = module.params["_gpunode"]
        if brought is None:
            module.exit_json(changed=False, gpunode_wanted=True)
        data = _bytes_of(brought)
        if not _intact(data):
            found = hashlib.sha256(data).hexdigest()
            module.fail_json(msg="nothing was run: gpunode's SHA-256 is %s, and %s is wanted" % (found, SHA256))
        self._keep(data)

    def ask(self, *words):
        """What gpunode prints with --json, and its exit code; ends the module where that is no JSON."""
        code, out, err = self.text(*(words + ("--json",)))
        try:
            return code, json.loads(out)
        except ValueError:
            self.module.fail_json(msg="gpunode %s ended with exit code %d" % (words[0], code), stderr=err[-4000:])

    def text(self, *words):
        return self.module.run_command(
            [self.python, "-I", self.path] + list(words), environ_update=dict(NO_COLOR="1"), use_unsafe_shell=False
        )

    def spec(self, wanted):
        """A file with the spec: JSON is YAML."""
        path = os.path.join(self.private, "spec.yaml")
        with open(path, "w") as file:
            file.write(json.dumps(wanted))
        return path

    def fail(self, code, said):
        """Ends the module with what gpunode says: of the host, or of the command line."""
        hosts = said.get("hosts") or [{}]
        fault = said if "problem" in said else hosts[0]
        if "problem" not in fault and fault.get("run"):
            fault = dict(fault["run"], problem=fault["run"]["error"])
        words = [fault.get("problem"), fault.get("evidence"), (fault.get("remedy") or {}).get("text")]
        text = "; ".join(word for word in words if word) or "gpunode ended with exit code %d" % code
        self.module.fail_json(msg=text, code=code, result=said)

    def _python(self):
        for path in PYTHONS:
            if os.access(path, os.X_OK) and self.module.run_command([path, "-I", "-c", OLD])[0] == 0:
                return path
        self.module.fail_json(msg="this host has no Python 3.10 or later in /usr/bin; EL 9: dnf install python3.12")

    def _keep(self, data):
        """In check mode nothing is left behind: gpunode lies in a temporary directory then."""
        directory = self.private if self.module.check_mode else STATE
        if not os.path.isdir(directory):
            os.makedirs(directory, 0o700)
        if os.path.islink(directory) or os.stat(directory).st_uid != 0:
            self.module.fail_json(msg="%s is not a directory of root's own; remove it" % directory)
        os.chmod(directory, 0o700)
        path = os.path.join(directory, "gpunode-%s.pyz" % SHA256)
        handle, new = tempfile.mkstemp(dir=directory)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(new, 0o700)
        os.rename(new, path)
        self.path = path


def _bytes_of(path):
    try:
        with open(path, "rb") as file:
            return file.read(SIZE + 1)
    except (IOError, OSError):
        return b""


def _intact(data):
    return hashlib.sha256(data).hexdigest() == SHA256
