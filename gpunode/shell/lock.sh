# The host lock: one file that appears with its content (link(2) is atomic). /run is gone after a reboot, and so is the lock.
# peek | take OWNER | keep TOKEN | break STALE OWNER | release TOKEN LINES (for the journal, "": none). Replies: free | taken | kept | released | held AGE_S OWNER
verb=$1
umask 077

held() {
    owner=$(cat "$lock" 2>/dev/null) || return 1
    now=$(date +%s)
    age=$((now - $(stat -c %Y "$lock" 2>/dev/null || echo "$now")))
    # A clock that was set forward makes no living holder old. What is no number is from no script of ours.
    first_line "${lock%/*}/beat" && read -r since_boot _ </proc/uptime && case $found in
        '' | *[!0-9]* | 0?* | ??????????*) ;;
        *) silent=$((${since_boot%.*} - found)) && [ "$silent" -ge 0 ] && [ "$silent" -lt "$age" ] && age=$silent ;;
    esac
    printf 'held %s %s\n' "$age" "$owner"
    exit 0
}
# first_line FILE: into $found; false where it has gone.
first_line() {
    found=
    [ -f "$1" ] || return 1
    IFS= read -r found <"$1" || :
}
take() {
    said=$(mkdir -p "${lock%/*}" 2>&1) || failed "cannot make ${lock%/*}: $said"
    mine=$lock.$$
    # Through cat, which names the reason, as the journal is written.
    said=$(exec 2>&1; printf '%s\n' "$1" | LC_ALL=C cat >"$mine") || { rm -f "$mine"; failed "cannot write $mine: ${said##*: }"; }
    if ln "$mine" "$lock" 2>/dev/null; then
        rm -f "$mine"
        beat
        echo taken
        exit 0
    fi
    rm -f "$mine"
    # A clock that was ahead, and was set since: such a heartbeat would stay young until that hour comes again.
    [ "$(stat -c %Y "$lock" 2>/dev/null || echo 0)" -le "$(date +%s)" ] || touch -c "$lock"
    held || failed "cannot make $lock"
}

case $verb in
    peek) held || echo free ;;
    take) take "$2" ;;
    keep)
        keep_lock "$2"
        echo kept
        ;;
    break)
        # Whoever moves the stale file away may take its place; one that another run took meanwhile stays, and goes back
        # where it came between the look and the move. STALE is its first line as it was reported, whatever that is.
        if first_line "$lock" && [ "$found" = "$2" ] && mv "$lock" "$lock.stale.$$" 2>/dev/null; then
            first_line "$lock.stale.$$"
            [ "$found" = "$2" ] || ln "$lock.stale.$$" "$lock" 2>/dev/null
        fi
        rm -f "$lock.stale.$$"
        take "$3"
        ;;
    release)
        if [ -n "${3:-}" ]; then
            keep_lock "$2"
            journal "$3"
        fi
        ! grep -qsF "\"$2\"" "$lock" || rm -f "$lock" "${lock%/*}/beat" "$(script_file)"
        echo released
        ;;
esac
