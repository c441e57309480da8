# Before the first write: the hash of every file the plan will touch, the directories of all runs, the journal's tail.
# It takes away copies among the backups that a killed write did not finish, and writes nothing.
# The files come as pairs of PATH and "UID:GID" of the user whose file it is ("": root).
token=$1
shift
keep_lock "$token"
for copy in "$state"/backup/*/*.part; do
    [ ! -f "$copy" ] || rm -f "$copy"
done
echo files
while [ $# -gt 0 ]; do
    ( # why it cannot be written says who writes it
        failed() { echo unreadable; exit; }
        set_run_as "$2" "$1"
        locate "$1"
        seen "$resolved" 2>/dev/null || echo unreadable
    )
    shift 2
done
echo directories
for directory in "$state"/runs/*/ "$state"/backup/*/; do
    directory=${directory%/}
    [ ! -d "$directory" ] || echo "${directory#"$state"/}"
done
echo journal
tail -n 5000 "$state/journal.jsonl" 2>/dev/null | tail -c 2097152 # of an answer there may be 4 MiB
