# Write (text on stdin) or remove one file, whole or not at all.
# Replies: same | drift SHA | invalid CODE + output | written JSON
token=$1 pending=$2 entry=$3 path=$4 expect=$5 want=$6 mode=$7 backup=$8 limit=$9
shift 9
codes=$1 input=$2 user=$3
shift 3

made=0
cleanup() {
    rm -f "$backup.part"
    quiet rm -f "$candidate"
    below=$directory
    while [ "$made" -gt 0 ]; do
        quiet rmdir "$below" || break
        below=${below%/*} made=$((made - 1))
    done
}

keep_lock "$token"
named "${script_id:-}" "$user"
set_run_as "$user" "$path"
locate "$path"
hold_file "$path"
check_owner "$resolved"
before=$(seen "$resolved" 2>/dev/null) || failed "cannot read $resolved"
if [ "$before" = "$want" ]; then
    journal "$pending"
    echo same
    exit 0
fi
# Writing through it would put a file where nobody asked for one; replacing it would undo somebody's choice.
! quiet test -h "$path" || quiet test -e "$path" ||
    failed "$path is a symbolic link to $(as_owner readlink "$path"), which is missing${run_as:+ or is not for user ${run_as%:*} to see}"
[ "$want" != absent ] || ! quiet test -h "$path" ||
    failed "$path is a symbolic link to $resolved, which may be for others too: remove it manually"
case $expect in any | "$before") ;; *) echo "drift $before"; exit 0 ;; esac
trap 'cleanup; exit 129' HUP INT TERM

# A copy of the bytes, root's alone: config files hold registry passwords.
facts='"before":"absent"'
if [ "$before" != absent ]; then
    backup=$backup.$before
    said=$(umask 077 && mkdir -p "${backup%/*}" 2>&1) || failed "cannot make the backup directory: $said"
    if [ -n "$run_as" ]; then
        # Root writes the copy: the user's program must not hold root's file.
        (umask 077; run_as_user_bytes=4194304; as_owner cat "$resolved" >"$backup.part") ||
            failed "cannot back up $path: $(head -c 200 "$backup.part")"
    else
        said=$(umask 077 && LC_ALL=C cp "$resolved" "$backup.part" 2>&1) || failed "cannot back up $path: ${said#cp: }"
    fi
    [ "$(sha "$backup.part")" = "$before" ] || failed "cannot back up $path: the copy differs"
    flush "$backup.part"
    mv -f "$backup.part" "$backup"
    flush "${backup%/*}"
    owner=$(as_owner stat -c '"mode":"%a","uid":%u,"gid":%g' "$resolved") || failed "cannot stat $resolved"
    case $owner in *[!a-z0-9:,\"]*) false ;; *) printf '%s\n' "$owner" | grep -Eqx '"mode":"[0-7]+","uid":[0-9]+,"gid":[0-9]+' ;; esac ||
        failed "cannot stat $resolved"
    facts="\"before\":\"$before\",\"backup\":\"$backup\",$owner"
fi

below=$directory missing=0
while [ -n "$below" ] && ! quiet test -d "$below"; do
    below=${below%/*} missing=$((missing + 1))
done
entry="$entry,$facts,\"directories\":$missing}"
journal "$pending${pending:+
}$entry"

if [ "$want" = absent ]; then
    said=$(as_owner rm -f "$resolved" 2>&1) || failed "cannot remove $resolved: ${said#rm: }"
    settle "$directory"
    printf 'written %s\n' "$entry"
    exit 0
fi

made=$missing
said=$(umask 022 && as_owner mkdir -p "$directory" 2>&1) || failed "cannot make the directory $directory: ${said#mkdir: }"
quiet rm -f "$candidate" "$sibling"
if [ "$before" = absent ]; then
    said=$(exec 2>&1; umask 077; fill "$candidate" </dev/null) || failed "cannot write next to $path: ${said##*"$candidate": }"
    said=$(as_owner chmod "$mode" "$candidate" 2>&1) || failed "cannot set the mode of $candidate: $said"
else
    # Owner, mode, ACL and SELinux label travel with the copy; only the bytes are new.
    said=$(as_owner cp -a "$resolved" "$candidate" 2>&1) || failed "cannot write next to $path: ${said#cp: }"
fi
said=$(exec 2>&1; fill "$candidate") || failed "cannot write $candidate: ${said##*: }"
[ "$(seen "$candidate")" = "$want" ] || failed "the text for $path did not arrive whole"
settle "$candidate"

if [ $# -gt 0 ]; then
    # {candidate} in any word of the validator becomes the new file's path.
    mark='{candidate}' words=$#
    while [ "$words" -gt 0 ]; do
        word=$1
        shift
        case $word in *"$mark"*) word=${word%%"$mark"*}$candidate${word#*"$mark"} ;; esac
        set -- "$@" "$word"
        words=$((words - 1))
    done
    case $input in *"$mark"*) input=${input%%"$mark"*}$candidate${input#*"$mark"} ;; esac
    if [ -n "$run_as" ]; then
        said=$(printf %s "$input" | run_as_user "$run_as" "$limit" "$@")
        code=$?
    else
        timeout 1 true 2>/dev/null && set -- timeout "$limit" "$@"
        said=$(printf %s "$input" | "$@" 2>&1)
        code=$?
    fi
    case " $codes " in
        *" $code "*) ;;
        *) cleanup; printf 'invalid %s\n%s\n' "$code" "$said"; exit 0 ;;
    esac
fi

# Once more, as close to the rename as sh can be: the validator took its time.
keep_lock "$token" # whoever took it over meanwhile may be writing to the same candidate
now=$(seen "$resolved")
[ "$now" = "$before" ] || { cleanup; echo "drift $now"; exit 0; }
swap
made=0
[ "$before" != absent ] || relabel "$resolved"
[ "$(seen "$resolved")" = "$want" ] || failed "$path does not hold the new text after the rename"
printf 'written %s\n' "$entry"
