# The journal from byte $1 on, a piece of it. Read-only. Replies: none | denied | journal SIZE, and then the bytes.
file=$state/journal.jsonl
if [ ! -e "$file" ]; then
    # Without permission to look into the directory, "not there" would be a guess.
    if [ -d "$state" ] && [ ! -x "$state" ]; then echo denied; else echo none; fi
elif [ ! -r "$file" ]; then
    echo denied
else
    echo "journal $(wc -c <"$file" | tr -d ' ')"
    tail -c "+$((${1:-0} + 1))" "$file" | head -c 2097152
fi
