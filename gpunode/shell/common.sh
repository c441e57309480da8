# Put in front of every other script here. POSIX sh with coreutils or busybox.
# A foreseen outcome is the first line on stdout, with exit 0; any other exit means that the script itself died.
state=/var/lib/gpunode
lock=/run/gpunode/lock

# failed SENTENCE: say why nothing more was done, after `cleanup` took away what was half made.
cleanup() { :; }
failed() {
    cleanup
    printf 'failed %s\n' "$1"
    exit 0
}

# beat: the heartbeat: the lock's mtime, and next to it the seconds since the boot, which go on where the clock is set.
# touch -c: a script of an interrupted run may still be beating while the lock is released, and must not make a new one.
beat() {
    touch -c "$lock"
    { read -r since_boot _ </proc/uptime && [ -e "$lock" ] && echo "${since_boot%.*}" >"${lock%/*}/beat"; } 2>/dev/null || :
}

# keep_lock TOKEN: beat, where the lock is ours. "" means that the caller holds no lock. A lock that is no longer ours stops us,
# and so does one that is gone, as after a reboot.
keep_lock() {
    [ -n "$1" ] || return 0
    case $(cat "$lock" 2>/dev/null) in
        *"\"$1\""*) beat ;;
        "") echo "lock-gone"; exit 0 ;;
        *) echo "lock-lost"; exit 0 ;;
    esac
}

# named ID [USER]: record who runs this script, so that end.sh can end it should it outlive its limit: ID, session, when
# the session's leader began, boot. One file, next to the lock that keeps all but one gpunode away. Session 0: commands
# that run as a user (as_user.sh) have sessions of their own, and nobody could tell when the last of them has ended.
script_file() { echo "${lock%/*}/script"; }
field_of() { sed -n 's/.*) //p' "/proc/$1/stat" 2>/dev/null | cut -d ' ' -f "$2"; } # PID NUMBER, counted behind the name
named() {
    [ -n "$1" ] || return 0
    session=$(field_of "$$" 4)
    began=$(field_of "$session" 20)
    [ -z "$2" ] || session=0
    # A script that cannot be recorded runs as well; end.sh cannot end it, and reports that.
    {
        mkdir -p "${lock%/*}" && printf '%s %s %s %s\n' "$1" "${session:-0}" "${began:--}" \
            "$(cat /proc/sys/kernel/random/boot_id)" >"$(script_file)"
    } 2>/dev/null || :
}

# Beat while something long runs; ends with this script, even when it is killed.
heartbeat() {
    [ -n "$1" ] || return 0
    ( while sleep 10 && kill -0 $$ && grep -qF "\"$1\"" "$lock"; do beat; done ) </dev/null >/dev/null 2>&1 &
    beater=$!
}

# flush PATH: fsync a file or directory of root's; settle PATH: one that `as_owner` wrote.
flush() { synced "$1" sync "$1"; }
settle() { synced "$1" as_owner sync "$1"; }
# coreutils before 8.24 and small busyboxes know only `sync` for everything.
synced() {
    flushed=$1
    shift
    said=$(LC_ALL=C "$@" 2>&1) && return 0
    case $said in
        *sage* | *nvalid* | *nrecognized*) sync ;;
        *) failed "cannot flush $flushed to disk: ${said#sync: }" ;;
    esac
}

# as_owner COMMAND...: with the rights of the file's own user (run_as="UID:GID"), see as_user.sh. In a user's directory
# root would look, read and write through any link that the user put in its way, so there it touches nothing itself.
run_as=''
run_as_s=30
as_owner() {
    if [ -z "$run_as" ]; then
        LC_ALL=C "$@"
    else
        run_as_user "$run_as" "$run_as_s" "$@" </dev/null
    fi
}
# quiet COMMAND...: as_owner with its output discarded: a user's output must not mix with this script's replies.
quiet() { as_owner "$@" >/dev/null 2>&1; }
# set_run_as UID:GID PATH: from here on `as_owner` runs as this user; "" is root.
set_run_as() {
    run_as=
    [ -z "$1" ] || run_as_user_ready "$1" ||
        failed "no setpriv (util-linux) here writes as user ${1%:*}, without which root does not write to $2"
    run_as=$1
}
# check_owner PATH: refuse a file in the user's directory that does not belong to the user.
check_owner() {
    [ -z "$run_as" ] || ! quiet test -e "$1" || [ "$(as_owner stat -Lc %u "$1")" = "${run_as%:*}" ] ||
        failed "$1 is not a file of user ${run_as%:*}, whose engine reads it"
}
# fill PATH: its bytes become what is on stdin. Another cat stands between that stream and the user's.
fill() {
    if [ -z "$run_as" ]; then
        LC_ALL=C cat >"$1"
    else
        cat | run_as_user "$run_as" "$run_as_s" sh -c 'exec cat >"$1"' sh "$1"
    fi
}
# seen PATH: `sha` with the owner's rights, of a regular file alone.
seen() {
    if [ -z "$run_as" ]; then
        sha "$1"
        return
    fi
    sum=$(as_owner sh -c '[ -e "$1" ] || { echo absent; exit; }; [ -f "$1" ] && exec sha256sum <"$1"' sh "$1") || return 1
    sum=${sum%% *}
    case $sum in
        absent) ;;
        *[!0-9a-f]*) return 1 ;;
        *) [ ${#sum} -eq 64 ] || return 1 ;;
    esac
    echo "$sum"
}

# sha PATH: 64 hex digits, or "absent". Of a regular file alone: a pipe would keep us waiting.
sha() {
    if [ ! -e "$1" ]; then echo absent; return 0; fi
    [ -f "$1" ] || return 1
    sum=$(sha256sum <"$1") || return 1
    echo "${sum%% *}"
}

# journal LINES: append and flush before anything that the lines announce. A line truncated by a power cut is closed first,
# also one that became zeroes, which `$(...)` drops.
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
        { [ ! -s "$file" ] || [ -z "$(tail -c 1 "$file" | tr '\000' x)" ] || echo; printf '%s\n' "$1"; } | LC_ALL=C cat >>"$file"
    ) || failed "cannot write the journal $file: ${said##*: }"
    flush "$file"
    [ -z "$fresh" ] || flush "$state"
}

# locate PATH: where its bytes live (links followed, and kept), and the candidate that becomes it: its sibling, or where CRI-O
# reads its directory a file above that. CRI-O takes all that lies in crio.conf.d and below, under any name: it would
# start with what a power cut left there, or would not start.
locate() {
    resolved=$(as_owner readlink -f "$1" 2>/dev/null) || resolved=$1
    case $resolved in /*) ;; *) resolved=$1 ;; esac
    directory=${resolved%/*}
    [ -n "$directory" ] || directory=/
    sibling=${directory%/}/.${resolved##*/}.gpunode
    candidate=$sibling
    case $directory/ in */crio*.d/*) candidate=${directory%/crio*.d*}/.${resolved##*/}.gpunode ;; esac
    ! quiet test -d "$resolved" || failed "$1 is a directory"
}

# hold_file PATH: refuse what is there and is no file. A link to /dev/null is how people switch a file off: it, and the
# device itself, are theirs.
hold_file() {
    ! quiet test -e "$resolved" || quiet test -f "$resolved" || failed "$1 is no regular file"
}

# swap: the candidate becomes the file. Both ends are flushed: a rename that was never flushed is lost in a power cut.
swap() {
    settle "$candidate"
    said=$(as_owner mv -f "$candidate" "$resolved" 2>&1 </dev/null) || failed "cannot replace $resolved: ${said#mv: }"
    settle "$directory"
}

relabel() {
    if command -v restorecon >/dev/null 2>&1; then quiet restorecon "$1" || :; fi
}
