# Put in front of every other script here. POSIX sh with coreutils or busybox.
# Outcomes that were foreseen are spoken as the first line on stdout and exit 0; any other exit means the script itself died.
state=/var/lib/gpunode
lock=/run/gpunode/lock

# failed SENTENCE: say why nothing more was done, after `cleanup` took away what was half made.
cleanup() { :; }
failed() {
    cleanup
    printf 'failed %s\n' "$1"
    exit 0
}

# The heartbeat: the lock's mtime. "" means that the caller holds no lock. A lock that is no longer ours stops us.
keep_lock() {
    [ -n "$1" ] || return 0
    case $(cat "$lock" 2>/dev/null) in
        *"\"$1\""*) touch "$lock" ;;
        *) echo "lock-lost"; exit 0 ;;
    esac
}

# Beat while something long runs; ends with this script, even when it is killed.
beat() {
    [ -n "$1" ] || return 0
    ( while sleep 10 && kill -0 $$ && grep -qF "\"$1\"" "$lock"; do touch "$lock"; done ) </dev/null >/dev/null 2>&1 &
    beater=$!
}

# flush PATH: fsync a file or folder. coreutils before 8.24 and small busyboxes know only `sync` for everything.
flush() {
    said=$(LC_ALL=C sync "$1" 2>&1) && return 0
    case $said in
        *sage* | *nvalid* | *nrecognized*) sync ;;
        *) failed "cannot flush $1 to disk: ${said#sync: }" ;;
    esac
}

# sha PATH: 64 hex digits, or "absent".
sha() {
    if [ ! -e "$1" ]; then echo absent; return 0; fi
    sum=$(sha256sum <"$1") || return 1
    echo "${sum%% *}"
}

# journal LINES: append and flush before anything that the lines announce. A line torn by a power cut is closed first.
journal() {
    [ -n "$1" ] || return 0
    file=$state/journal.jsonl
    fresh=
    [ -e "$file" ] || fresh=1
    said=$(umask 077 && mkdir -p "$state" 2>&1) || failed "cannot write the journal: $said"
    said=$(
        exec 2>&1
        umask 077
        # Through cat, which names the reason: dash's printf says "I/O error" of a full disk.
        { [ ! -s "$file" ] || [ -z "$(tail -c 1 "$file")" ] || echo; printf '%s\n' "$1"; } | LC_ALL=C cat >>"$file"
    ) || failed "cannot write the journal $file: ${said##*: }"
    flush "$file"
    [ -z "$fresh" ] || flush "$state"
}

# locate PATH: where its bytes live (links followed, and kept), and the sibling that becomes it.
locate() {
    resolved=$(readlink -f "$1" 2>/dev/null) || resolved=$1
    folder=${resolved%/*}
    [ -n "$folder" ] || folder=/
    candidate=${folder%/}/.${resolved##*/}.gpunode
    [ ! -d "$resolved" ] || failed "$1 is a folder"
}

# swap: the candidate becomes the file. Both ends are flushed: a rename that was never flushed is lost in a power cut.
swap() {
    flush "$candidate"
    said=$(LC_ALL=C mv -f "$candidate" "$resolved" 2>&1 </dev/null) || failed "cannot replace $resolved: ${said#mv: }"
    flush "$folder"
}

relabel() {
    if command -v restorecon >/dev/null 2>&1; then restorecon "$1" >/dev/null 2>&1 || :; fi
}
