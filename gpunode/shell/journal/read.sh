# The whole journal. Read-only. Replies: none | denied | journal, and then its bytes.
file=$state/journal.jsonl
if [ ! -e "$file" ]; then
    # Without permission to look into the directory, "not there" would be a guess.
    if [ -d "$state" ] && [ ! -x "$state" ]; then echo denied; else echo none; fi
elif [ ! -r "$file" ]; then
    echo denied
else
    echo journal
    cat "$file"
fi
