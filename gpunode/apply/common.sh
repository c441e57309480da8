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
# touch -c: a script of a run that was cut off may beat right when the lock is given back, and must not make a new one.
keep_lock() {
    [ -n "$1" ] || return 0
    case $(cat "$lock" 2>/dev/null) in
        *"\"$1\""*) touch -c "$lock" ;;
        *) echo "lock-lost"; exit 0 ;;
    esac
}

# Beat while something long runs; ends with this script, even when it is killed.
beat() {
    [ -n "$1" ] || return 0
    ( while sleep 10 && kill -0 $$ && grep -qF "\"$1\"" "$lock"; do touch -c "$lock"; done ) </dev/null >/dev/null 2>&1 &
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

# mine COMMAND...: by the hands of the file's own user (hands="UID:GID"). In a folder that is theirs, root would read and
# write through any link that they put in its way.
hands=''
setpriv=setpriv
mine() {
    if [ -z "$hands" ]; then
        LC_ALL=C "$@"
        return
    fi
    LC_ALL=C "$setpriv" --reuid "${hands%:*}" --regid "${hands#*:}" --clear-groups -- "$@"
}
# take_hands UID:GID PATH: from here on `mine` is them; "" is root. A file in their folder that is not theirs stays.
take_hands() {
    hands=$1
    [ -n "$hands" ] || return 0
    # busybox has one of its own, which changes no user.
    for one in /bin/setpriv /usr/bin/setpriv; do
        [ ! -x "$one" ] || setpriv=$one
    done
    mine true 2>/dev/null || failed "no setpriv (util-linux) here writes as user ${hands%:*}, without which root does not write to $2"
    [ ! -e "$2" ] || [ "$(stat -Lc %u "$2")" = "${hands%:*}" ] || failed "$2 is not a file of user ${hands%:*}, whose engine reads it"
}
# fill PATH: its bytes become what is on stdin.
fill() {
    if [ -z "$hands" ]; then
        LC_ALL=C cat >"$1"
    else
        mine sh -c 'LC_ALL=C exec cat >"$1"' sh "$1"
    fi
}
# seen PATH: `sha` by those hands.
seen() {
    if [ -z "$hands" ] || [ ! -e "$1" ]; then
        sha "$1"
        return
    fi
    sum=$(mine sha256sum "$1") || return 1
    sum=${sum#\\}
    echo "${sum%% *}"
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
    said=$(mine mv -f "$candidate" "$resolved" 2>&1 </dev/null) || failed "cannot replace $resolved: ${said#mv: }"
    flush "$folder"
}

relabel() {
    if command -v restorecon >/dev/null 2>&1; then mine restorecon "$1" >/dev/null 2>&1 || :; fi
}
