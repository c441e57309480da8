# sh -s -- PODMAN EXPECTED: exit 0 when podman works and its runtimes are as EXPECTED, for new containers of root.
# EXPECTED: nvidia = it is the default; +nvidia = it is among its runtimes; - = only that podman works is checked.
gpunode_podman() {
    case $2 in
    +*) set -- "$1" "${2#+}" --runtime "${2#+}" ;;
    esac
    gpunode_podman_bin=$1 gpunode_expected=$2
    shift 2
    if ! gpunode_seen=$(timeout 30 "$gpunode_podman_bin" "$@" info --format '{{.Host.OCIRuntime.Name}}' 2>&1 </dev/null); then
        printf '%s\n' "$gpunode_seen" | tail -n 3 >&2
        return 1
    fi
    # Warnings may come before it.
    gpunode_seen=$(printf '%s\n' "$gpunode_seen" | tail -n 1)
    [ "$gpunode_expected" = - ] || [ "$gpunode_seen" = "$gpunode_expected" ] && return 0
    echo "podman runs with $gpunode_seen as its default runtime, and $gpunode_expected was expected" >&2
    return 1
}

gpunode_podman "$@"
