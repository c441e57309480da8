# Made by `gpunode export ansible`.

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
---
module: setup
short_description: Makes a host with NVIDIA GPUs what a spec of gpunode wants
description:
  - Runs C(gpunode plan) and, where it has steps, C(gpunode setup) on the host, as root.
  - Never reboots. Where a step needs it, RV(reboot_required) is true; the role C(gpunode.node.gpunode) reboots.
version_added: "0.1.0"
options:
  spec:
    description: What the host should become, with the keys of a spec file of gpunode.
    type: dict
    default: {}
attributes:
  check_mode:
    description: Shows the plan and changes nothing; gpunode lies in a temporary directory meanwhile.
    support: full
  diff_mode:
    description: The plan as gpunode prints it, with each file's difference.
    support: full
requirements:
  - Python 3.10 or later on the host
author:
  - The gpunode authors (!UNKNOWN)
"""

EXAMPLES = r"""
- name: Set the host up
  gpunode.node.setup:
    spec:
      driver: "580"
      runtime: [docker]
"""

RETURN = r"""
steps:
  description: What the plan has, in its order.
  returned: success
  type: list
  elements: dict
reboot_required:
  description: Whether a reboot, or another step at the machine, is needed to go on.
  returned: success
  type: bool
result:
  description: What gpunode printed with C(--json).
  returned: when it changed the host, or failed
  type: dict
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gpunode.node.plugins.module_utils.gpunode import OWN, Gpunode

REBOOT_NEEDED = 6


def main():
    module = AnsibleModule(argument_spec=dict(OWN, spec=dict(type="dict", default={})), supports_check_mode=True)
    gpunode = Gpunode(module)
    # This machine's reboot is the play's: the connection would go with it.
    words = ("--spec", gpunode.spec(module.params["spec"]), "--reboot", "never")
    code, said = gpunode.ask("plan", *words)
    if code not in (0, REBOOT_NEEDED) or not said.get("hosts") or "plan" not in said["hosts"][0]:
        gpunode.fail(code, said)
    plan = said["hosts"][0]["plan"]
    steps = [dict((key, one[key]) for key in ("id", "title", "why")) for one in plan["steps"]]
    needed = bool(plan.get("reboot") or plan.get("console"))
    answer = dict(changed=bool(steps), steps=steps, reboot_required=needed)
    if module._diff and steps:
        answer["diff"] = dict(prepared=gpunode.text("plan", *words)[1])
    if module.check_mode or not (steps or needed):
        module.exit_json(**answer)
    code, said = gpunode.ask("setup", "--yes", *words)
    if code not in (0, REBOOT_NEEDED):
        gpunode.fail(code, said)
    answer.update(reboot_required=code == REBOOT_NEEDED, result=said)
    module.exit_json(**answer)


if __name__ == "__main__":
    main()
