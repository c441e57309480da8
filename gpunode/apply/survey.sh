# Before the first write, and read-only: the hash of every file the plan will touch, the folders of all runs, the journal's tail.
token=$1
shift
keep_lock "$token"
echo files
for path in "$@"; do
    locate "$path"
    sha "$resolved" 2>/dev/null || echo unreadable
done
echo folders
for folder in "$state"/runs/*/ "$state"/backup/*/; do
    folder=${folder%/}
    [ ! -d "$folder" ] || echo "${folder#"$state"/}"
done
echo journal
tail -n 5000 "$state/journal.jsonl" 2>/dev/null || :
