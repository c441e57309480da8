# Made by `gpunode export ansible`.

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
---
module: facts
short_description: What gpunode sees of a host with NVIDIA GPUs
description:
  - Runs C(gpunode detect --json) on the host, as root, which changes nothing.
version_added: "0.1.0"
attributes:
  check_mode:
    description: Does the same.
    support: full
  diff_mode:
    description: Changes nothing.
    support: none
requirements:
  - Python 3.10 or later on the host
author:
  - The gpunode authors (!UNKNOWN)
"""

EXAMPLES = r"""
- name: Look at the host
  gpunode.node.facts:

- name: Show its GPUs
  ansible.builtin.debug:
    var: ansible_facts.gpunode.gpus
"""

RETURN = r"""
ansible_facts:
  description: The facts, under C(gpunode).
  returned: success
  type: dict
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gpunode.node.plugins.module_utils.gpunode import OWN, Gpunode


def main():
    module = AnsibleModule(argument_spec=dict(OWN), supports_check_mode=True)
    gpunode = Gpunode(module)
    code, said = gpunode.ask("detect")
    if code != 0 or not said.get("hosts") or "facts" not in said["hosts"][0]:
        gpunode.fail(code, said)
    module.exit_json(changed=False, ansible_facts=dict(gpunode=said["hosts"][0]["facts"]))


if __name__ == "__main__":
    main()
