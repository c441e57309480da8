# sh -s -- CONTAINERD ROOT FILE CANDIDATE: would this containerd take CANDIDATE in the place of FILE?
# First that the programs it newly names are there: containerd starts without them, and pods fail one by one later.
# Then by its own reading of the whole configuration (config dump).

# gpunode_programs FILE: every BinaryName in it that is a path.
gpunode_programs() {
    sed -n "s/^[[:space:]]*\(.*[^[:alnum:]_]\)\{0,1\}BinaryName[[:space:]]*=[[:space:]]*[\"']\(\/[^\"']*\)[\"'].*/\2/p" "$1"
}

# A file that ROOT imports is no whole configuration. It is read through a throw-away one that imports ROOT and then
# the candidate, in ROOT's schema version: what follows in another version containerd reads silently, or not at all.
gpunode_after_root() {
    gpunode_file=$(umask 077 && mktemp) || return 1
    trap 'rm -f "$gpunode_file"' 0 1 2 15
    gpunode_version='' gpunode_imports=''
    for gpunode_from in "$2" "$3"; do
        [ -f "$gpunode_from" ] || continue
        [ -n "$gpunode_version" ] || gpunode_version=$(sed -n '/^[[:space:]]*\[/q
            s/^[[:space:]]*\(version[[:space:]]*=[[:space:]]*[0-9][0-9]*\).*/\1/p' "$gpunode_from")
        gpunode_imports="${gpunode_imports:+$gpunode_imports, }\"$gpunode_from\""
    done
    printf '%s\nimports = [%s]\n' "$gpunode_version" "$gpunode_imports" >"$gpunode_file"
    "$1" --config "$gpunode_file" config dump </dev/null
}

cd / # where systemd starts it: 1.6 looks there for relative globs
gpunode_known=$(gpunode_programs "$3" 2>/dev/null)
gpunode_missing=$(gpunode_programs "$4" | while read -r gpunode_path; do
    case "
$gpunode_known
" in *"
$gpunode_path
"*) continue ;; esac
    [ -f "$gpunode_path" ] && [ -x "$gpunode_path" ] || echo "$gpunode_path"
done)
if [ -n "$gpunode_missing" ]; then
    echo "$gpunode_missing is not an executable program: gpunode setup --only toolkit installs it" >&2
    exit 1
fi
gpunode_dump() {
    if [ "$2" = "$3" ]; then
        "$1" --config "$4" config dump </dev/null
    else
        gpunode_after_root "$1" "$2" "$4"
    fi
}

gpunode_said=$(gpunode_dump "$@" 2>&1 >/dev/null) && exit 0
# Somebody may have broken it since the daemon started, which would then not start again after any restart.
gpunode_note=
if [ -f "$2" ] && ! "$1" --config "$2" config dump </dev/null >/dev/null 2>&1; then
    gpunode_note=" ($2 is broken already, without gpunode's change: containerd would not start again)"
fi
printf '%s%s\n' "$gpunode_said" "$gpunode_note" >&2
exit 1
