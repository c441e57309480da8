# Made by `gpunode export ansible`.
"""Brings gpunode to a host that does not have it yet, and has a module run it there."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import os

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from ansible_collections.gpunode.node.plugins.module_utils.carried import SHA256

ZIPAPP = os.path.join(os.path.dirname(__file__), "..", "..", "files", "gpunode.pyz")
OWN = ("_gpunode", "_sha256")


class CarryingAction(ActionBase):
    """`module`: the module of the same name, which verifies what it gets."""

    TRANSFERS_FILES = True
    _supports_check_mode = True
    _supports_async = False
    module = ""

    def run(self, tmp=None, task_vars=None):
        result = super(CarryingAction, self).run(tmp, task_vars)
        asked = self._task.args
        if any(name in asked for name in OWN):
            raise AnsibleActionFail("%s are gpunode's own" % " and ".join(OWN))
        try:
            answer = self._ask(task_vars, None)
            if answer.pop("gpunode_wanted", False):
                answer = self._ask(task_vars, self._carry())
        finally:
            self._remove_tmp_path(self._connection._shell.tmpdir)
        answer.pop("gpunode_wanted", None)
        result.update(answer)
        return result

    def _ask(self, task_vars, remote):
        arguments = dict(self._task.args, _gpunode=remote, _sha256=SHA256)
        return self._execute_module(module_name=self.module, module_args=arguments, task_vars=task_vars)

    def _carry(self):
        """Where gpunode lies on the host now: a temporary file of the login's."""
        directory = self._connection._shell.tmpdir or self._make_tmp_path()
        remote = self._connection._shell.join_path(directory, "gpunode.pyz")
        self._transfer_file(os.path.abspath(ZIPAPP), remote)
        self._fixup_perms2((directory, remote))
        return remote
