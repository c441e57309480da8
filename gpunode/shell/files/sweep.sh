# Remove what killed writes left next to their files: pairs of PATH and "UID:GID" of the user whose file it is ("": root).
# Replies: swept
token=$1
shift
keep_lock "$token"
while [ $# -gt 0 ]; do
    path=$1 user=$2
    shift 2
    [ -z "$user" ] || run_as_user_ready "$user" || continue
    set_run_as "$user" "$path"
    ! quiet test -d "$path" || continue
    locate "$path"
    quiet rm -f "$candidate" "$sibling"
done
echo swept
