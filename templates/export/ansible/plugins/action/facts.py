# Made by `gpunode export ansible`.
"""gpunode.node.facts, with gpunode brought to the host first."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from ansible_collections.gpunode.node.plugins.plugin_utils.carry import CarryingAction


class ActionModule(CarryingAction):
    module = "gpunode.node.facts"
