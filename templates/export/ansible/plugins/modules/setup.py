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
  - What is left to a person, such as a restart that stops containers, is in RV(manual_steps), with a warning.
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
  description: Whether a reboot goes on with it. Not where somebody has to be at the console meanwhile.
  returned: success
  type: bool
manual_steps:
  description: What is left to a person; C(gpunode setup) ends with exit code 6 for it.
  returned: success
  type: list
  elements: str
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
    plan = (said.get("hosts") or [{}])[0].get("plan")
    refused = [one for one in (plan or {}).get("kept", []) if one.get("refused")]
    if plan is None or (code not in (0, REBOOT_NEEDED) and not refused):
        gpunode.fail(code, said)
    steps = [dict((key, one[key]) for key in ("id", "title", "why")) for one in plan["steps"]]
    by_hand = [one["by_hand"] for one in plan["steps"] + plan["kept"] if one.get("by_hand")]
    answer = dict(changed=bool(steps), steps=steps, **_left(plan, by_hand))
    if module._diff and steps:
        answer["diff"] = dict(prepared=gpunode.text("plan", *words)[1])
    if steps and not module.check_mode:
        code, said = gpunode.ask("setup", "--yes", *words)
        if code not in (0, REBOOT_NEEDED) and not refused:
            gpunode.fail(code, said)
        run = said["hosts"][0]["run"]
        answer.update(_left(dict(run["plan"] or plan, reboot=run["reboot"]), run["by_hand"]), result=said)
    if refused:
        words = "; ".join("%s (%s)" % (one["text"], one["evidence"]) for one in refused)
        gpunode.fail(code, dict(said, problem="; ".join([words] + answer["manual_steps"])))
    for words in answer["manual_steps"]:
        module.warn("left to you: " + words)
    module.exit_json(**answer)


def _left(plan, by_hand):
    """A reboot with somebody at the console is that person's: without one, what it is for would only be passed by."""
    console = plan["console"] if plan["reboot"] else None
    manual = sorted(set(by_hand)) + ([console] if console else [])
    return dict(reboot_required=bool(plan["reboot"]) and not console, manual_steps=manual)


if __name__ == "__main__":
    main()
