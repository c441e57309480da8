# shellcheck shell=sh disable=SC2154
# A step of the NodeWright package: setup | check. The operator's agent runs it with the node's root as its own and every other
# namespace a container's; it hands gpunode and the spec over to the node and has the node run them. Its exit status is gpunode's.
# Sent after on_host.sh. SKYHOOK_DIR, of the agent: where the package was copied to on the node.
HERE=$SKYHOOK_DIR/skyhook_dir

outside || exit 2
on_host bring <"$HERE/gpunode.pyz" || exit 1
on_host spec <"$HERE/spec.yaml" || exit 1
on_host "$1" </dev/null
