# shellcheck shell=sh disable=SC2154
# Carries out the plan that stands below, as apply/execute.py does over SSH and with the same scripts, which stand above as
# functions: gpunode_files_put and others. What stands there as well: KEY (of this plan), HOST_NAME, KERNEL, SYSTEM, STALE_S,
# STEPS, SHOWN, ENDS (an exit code) and ENDING, WATCHED (packages, NAME VERSION a line, "-" for none), and functions:
# list_packages, each_file, each_last_file, all_steps. The words of common.sh are taken: state, lock, failed, journal ...

PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export PATH
NEWLINE='
'
T='' TOKEN='' RUN='' PENDING='' WHY='' STATE=going STOPPED='' LOCKED='' NUMBER=0

tell() { printf 'gpunode: %s\n' "$*"; }
quit() { # CODE WORDS...
  exit_code=$1; shift
  printf 'gpunode: %s\n' "$*" >&2
  exit "$exit_code"
}
visible() { LC_ALL=C tr -cd '\012\040-\176'; } # what a terminal shows, and does not obey
printable() { visible | head -c 2000; }
add() { PENDING=$PENDING${PENDING:+$NEWLINE}$1; } # LINE of the journal, which goes along with the next script

# ask FUNCTION WORDS...: one script, with $T/in as its input -> WORD and REST of its reply, CODE; false: it did nothing more, see WHY.
ask() {
  CODE=0 WORD='' SILENT=''
  "$@" <"$T/in" >"$T/out" 2>"$T/err" || CODE=$?
  IFS= read -r REST <"$T/out" || :
  WORD=${REST%% *}
  case $REST in *' '*) REST=${REST#* } ;; *) REST='' ;; esac
  case $WORD in
    lock-lost | lock-gone) quit 8 'the lock of this host is not ours any more: another gpunode took it over, or the host was rebooted' ;;
    failed) WHY=$(printf '%s\n' "$REST" | printable); return 1 ;;
    '') SILENT=1 WHY="a script ended without a reply, exit code $CODE: $(printable <"$T/err" | tail -n 1)"; return 1 ;;
  esac
}
nothing_in() { : >"$T/in"; }
nothing() { :; } # the input of a command that reads none

# ---- before the first change

usage() {
  cat >&2 <<END
Usage: sh $0 [--show | --yes]
  --show   what it would do on this host, and whether the host is as its plan saw it; changes nothing
  --yes    do it
END
  exit 2
}

same_host() {
  now=$(cat /proc/sys/kernel/hostname)
  [ "$now" = "$HOST_NAME" ] || quit 2 "this plan is for $(printf %s "$HOST_NAME" | printable), and this host is $(printf %s "$now" | printable); nothing was changed"
  # shellcheck disable=SC1091
  now=$(. /etc/os-release 2>/dev/null && printf '%s %s' "${ID:-}" "${VERSION_ID:-}")
  [ "$now" = "$SYSTEM" ] || quit 7 "this host has another system than its plan saw: $now, and not $SYSTEM; nothing was changed"
  [ "$(uname -r)" = "$KERNEL" ] || quit 7 "this host runs another kernel than its plan saw: $(uname -r), and not $KERNEL; nothing was changed"
}

has_tools() {
  for tool in awk cat chmod cmp cp date grep head id mkdir mktemp mv readlink rm sed sha256sum sort stat tail touch tr uname wc; do
    command -v "$tool" >/dev/null 2>&1 || quit 4 "$tool is not on this host"
  done
}

held_by() { # REPLY of the lock's script: held AGE OWNER
  holder=${1#held }
  AGE=${holder%% *} HOLDER=${holder#* }
  case $AGE in '' | *[!0-9]*) AGE=0 ;; esac
}
busy() { quit 8 "another gpunode is at work on this host; its lock was touched $AGE s ago: $(printf %s "$HOLDER" | printable)"; }

look_at_lock() {
  reply=$(gpunode_lock peek)
  case $reply in held\ *) held_by "$reply"; [ "$AGE" -gt "$STALE_S" ] || busy ;; esac
}

take_lock() {
  TOKEN=$$-$(tr -cd 'a-f0-9' </proc/sys/kernel/random/uuid)
  name=$(uname -n | LC_ALL=C tr -cd 'A-Za-z0-9._-')
  owner="{\"host\": \"$name\", \"pid\": $$, \"token\": \"$TOKEN\", \"user\": \"root\", \"since\": \"$(date -u +%Y-%m-%dT%H:%M:%S+00:00)\", \"pids\": \"\"}"
  reply=$(gpunode_lock take "$owner")
  case $reply in
    held\ *)
      held_by "$reply"
      [ "$AGE" -gt "$STALE_S" ] || busy
      reply=$(gpunode_lock break "$HOLDER" "$owner")
      case $reply in held\ *) held_by "$reply"; busy ;; esac
      ;;
  esac
  [ "$reply" = taken ] || quit 1 "the lock of this host cannot be taken: $(printf %s "${reply#failed }" | printable)"
  LOCKED=1
}

leave() {
  [ -z "$LOCKED" ] || gpunode_lock release "$TOKEN" >/dev/null
  [ -z "$T" ] || rm -rf "$T"
}

# Steps that began and never ended: a gpunode was killed there, and the old bytes of its files are in the backup.
interrupted() {
  [ -s "$state/journal.jsonl" ] || return 0
  awk '
    function field(name) { return match($0, "\"" name "\": \"[^\"]*\"") ? substr($0, RSTART, RLENGTH) : "" }
    /^\{"kind": "step-begin"/ { open[field("run") " " field("step")] = 1 }
    /^\{"kind": "step-end"/ { delete open[field("run") " " field("step")] }
    END { for (key in open) print key }' "$state/journal.jsonl"
}

# hash_of PATH OWNER: 64 hex digits, absent, or unreadable
hash_of() {
  nothing_in
  ask gpunode_files_check_drift "$TOKEN" "$1" "$2" || return 1
  HASH=$(sed -n 2p "$T/out")
}

CHANGED=''
first_of() { # PATH OWNER BEFORE AFTER FREE: as the plan saw it, or as the plan will have it
  hash_of "$1" "$2" || quit 1 "$1: $WHY"
  if [ "$5" = 1 ] || [ "$HASH" = "$3" ] || [ "$HASH" = "$4" ]; then return 0; fi
  CHANGED="$CHANGED${CHANGED:+, }$1"
}

watched() { # what is there now of the packages in WATCHED, in its form
  [ -n "$WATCHED" ] || return 0
  list_packages >"$T/packages" || return 1
  printf '%s\n' "$WATCHED" | while read -r name _; do
    awk -v name="$name" '$1 == name && !(NF == 4 && $4 ~ /^.[nc]/) { print $1, $2; found = 1 } END { if (!found) print name, "-" }' "$T/packages"
  done
}

packages_as_seen() { # every line of WATCHED is true: of two architectures one may have another version
  watched >"$T/now" || quit 1 'the installed packages cannot be listed'
  [ -n "$WATCHED" ] || return 0
  printf '%s\n' "$WATCHED" >"$T/seen"
  while IFS= read -r line; do
    grep -qxF "$line" "$T/now" || CHANGED="$CHANGED${CHANGED:+, }package ${line%% *}"
  done <"$T/seen"
}

# What a run to the end left: packages, and in which boot. The machine is held against it, so nothing is believed.
RECORD=$state/scripts/$KEY
boot_id() { cat /proc/sys/kernel/random/boot_id; }
SETTLED=1
last_of() { # PATH OWNER AFTER
  [ -n "$SETTLED" ] || return 0
  { hash_of "$1" "$2" && [ "$HASH" = "$3" ]; } || SETTLED=''
}
settled() {
  [ -f "$RECORD" ] || return 1
  watched >"$T/now" && sed 1d "$RECORD" | cmp -s - "$T/now" || return 1
  each_last_file
  [ -n "$SETTLED" ]
}
record() {
  (
    umask 077
    mkdir -p "$state/scripts" && { boot_id; watched; } >"$RECORD.part" && mv -f "$RECORD.part" "$RECORD"
  ) || tell "what was done cannot be recorded in $RECORD: run once more, this script would do it again"
}

# ---- actions of a step; each is false, with WHY, when it failed

# write_file TEXT ENTRY PATH EXPECT AFTER MODE BACKUP LIMIT CODES INPUT OWNER VALIDATOR...
write_file() {
  "$1" >"$T/in"
  shift
  ask gpunode_files_put "$TOKEN" "$PENDING" "$@" || { remember_announced "$@"; return 1; }
  case $WORD in
    same) PENDING='' ;;
    written) PENDING=''; remember 1 "$REST" "$@" ;;
    invalid) PENDING='' WHY="the new $2 is refused: $(sed 1d "$T/out" | printable | tail -n 5)"; remember_announced "$@"; return 1 ;;
    *) WHY="$2 was changed by somebody else meanwhile"; remember_announced "$@"; return 1 ;;
  esac
}

# remember_announced ENTRY ...: what a write that failed had announced: it may have come as far as the file
remember_announced() {
  line=$(tail -n 5 "$state/journal.jsonl" 2>/dev/null | grep -F -- "$1," | tail -n 1)
  [ -z "$line" ] || remember 0 "$line" "$@"
}

# remember OWN REPLY ENTRY PATH EXPECT AFTER MODE BACKUP LIMIT CODES INPUT OWNER ...: for `restore`, a line each
# OWN: as files/restore.sh takes it
remember() {
  own=$1
  shift
  WRITTEN=$((WRITTEN + 1))
  told=${1##*'"before":'}
  before=${told#\"}; before=${before%%\"*}
  file_mode='' file_owner=0:0 kept=''
  if [ "$before" != absent ]; then
    kept=$7.$before
    file_mode=${told##*'"mode":"'}; file_mode=${file_mode%%\"*}
    uid=${told##*'"uid":'}; gid=${told##*'"gid":'}
    file_owner=${uid%%,*}:${gid%%,*}
  fi
  above=${told##*'"directories":'}
  printf '%s\n' "$2" "$3" "$before" "$5" "$file_mode" "$file_owner" "$kept" "${above%\}*}" "${11}" "$7" "$own" >"$T/$NUMBER.$WRITTEN"
}

# restore FILE: one file that this run wrote, as `remember` noted it
restore() {
  {
    IFS= read -r entry; IFS= read -r path; IFS= read -r before; IFS= read -r after; IFS= read -r mode
    IFS= read -r owner; IFS= read -r kept; IFS= read -r above; IFS= read -r user; IFS= read -r place; IFS= read -r own
  } <"$1"
  nothing_in
  ask gpunode_files_restore "$TOKEN" "$own" "$path" "$before" "$after" "$mode" "$owner" "$kept" "$above" "$user" "$place" || return 1
  # Once it is so: until then an undo takes the change back.
  add "{\"kind\": \"restore\"${entry#'{"kind": "file"'}}"
  [ "$WORD" != restored ] || [ -z "$REST" ] || tell "what something else wrote to $path since is kept in $REST"
}

judge() { # CODES DESCRIPTION RECORD STEP: the command's end, in CODE and $T/said
  case " $1 " in
    *" $CODE "*) ;;
    *) WHY="$2 ended with code $CODE: $(printable <"$T/said" | grep -v '^[[:space:]]*$' | tail -n 5)"; return 1 ;;
  esac
  [ -z "$3" ] || answer "$2" "$4"
}
quoted() { LC_ALL=C tr -cd '\012\040-\176' | sed 's/\\/\\\\/g; s/"/\\"/g' | awk '{ printf "%s%s", s, $0; s = "\\n" }'; }
answer() { # DESCRIPTION STEP: what the command printed goes to the journal
  add "{\"kind\": \"answer\", \"run\": \"$RUN\", \"step\": \"$2\", \"description\": \"$(printf '%s\n' "$1" | quoted)\", \"text\": \"$(tail -n 20 "$T/said" | quoted)\"}"
}

# run_command TEXT CODES PAUSES CHANGES RECORD DESCRIPTION STEP LINE LIMIT WORDS...
run_command() {
  input=$1 codes=$2 pauses=$3 changes=$4 kept=$5 description=$6 of=$7 line=$8 limit=$9
  shift 9
  for pause in $pauses end; do
    "$input" >"$T/in"
    add "$line"
    RAN=$RAN$changes
    ask gpunode_commands_run "$TOKEN" "$PENDING" "$limit" "$@" || return 1
    PENDING=''
    { sed 1d "$T/out"; cat "$T/err"; } >"$T/said"
    if judge "$codes" "$description" "$kept" "$of"; then return 0; fi
    [ "$pause" = end ] || sleep "$pause"
  done
  return 1
}

# run_unit TEXT CODES PAUSES CHANGES RECORD DESCRIPTION STEP LINE LIMIT ID SIZE RUNNER: a package transaction, which outlives this script
run_unit() {
  input=$1 codes=$2 pauses=$3 changes=$4 kept=$5 description=$6 of=$7 line=$8 limit=$9
  shift 9
  try=''
  for pause in $pauses end; do
    "$input" >"$T/in"
    add "$line"
    ask gpunode_commands_start_detached "$TOKEN" "$PENDING" "$1$try" "$2" "$3" || return 1
    PENDING=''
    RAN=$RAN$changes
    follow "$1$try" "$limit" "$description" || return 1
    if judge "$codes" "$description" "$kept" "$of"; then return 0; fi
    [ "$pause" = end ] || sleep "$pause"
    try=$try.again
  done
  return 1
}

follow() { # ID LIMIT DESCRIPTION -> CODE, $T/said
  begun=$(date +%s) size=0 silent=0
  while :; do
    nothing_in
    if ask gpunode_commands_wait_detached "$TOKEN" "$1" "$size" 20; then
      silent=0
    else # ^C reaches that script too, and not the unit: half a transaction is worse than a late one
      silent=$((silent + 1))
      if [ -n "$SILENT" ] && [ "$silent" -lt 5 ]; then continue; fi
      return 1
    fi
    case $WORD in
      ended) UNIT_CODE=${REST%% *}; break ;;
      vanished) WHY="$3 vanished without an exit code; $state/runs/$1/out holds what it printed"; return 1 ;;
    esac
    size=$REST
    if [ $(($(date +%s) - begun)) -gt "$2" ]; then
      WHY="$3 still runs, over its limit of $2 s, and was left running; its output is in $state/runs/$1/out"
      return 1
    fi
  done
  CODE=$UNIT_CODE
  tail -c 65536 "$state/runs/$1/out" >"$T/said"
}

# ---- steps

step_end() { # STEP STATUS ERROR
  add "{\"kind\": \"step-end\", \"run\": \"$RUN\", \"step\": \"$1\", \"status\": \"$2\", \"error\": \"$(printf '%s\n' "$3" | quoted)\"}"
}

# roll_back NUMBER UNDO: files, newest first, then the step's undo -> FAULT
roll_back() {
  FAULT='' NUMBER=$1
  [ ! -e "$T/$1.ran" ] || RAN=$(cat "$T/$1.ran")
  count=0
  while [ -e "$T/$1.$((count + 1))" ]; do count=$((count + 1)); done
  while [ "$count" -gt 0 ]; do
    if ! restore "$T/$1.$count"; then
      old='it was absent before'
      [ -z "$kept" ] || old="its old bytes are in $kept"
      FAULT="$FAULT${FAULT:+; }$path could not be restored ($WHY); $old"
    elif [ "$WORD" = restored ]; then
      RAN=${RAN}1
    fi
    count=$((count - 1))
  done
  [ -z "$FAULT" ] || return 1
  # With nothing changed there is nothing to undo: no daemon is restarted because a candidate was not valid.
  [ -n "$RAN" ] || return 0
  WRITTEN=1000 # what the undo writes is not this step's to restore
  "$2" || { FAULT="after the files were restored: $WHY"; return 1; }
}

# step ID LINE TITLE ACTIONS UNDO SERVED
step() {
  NUMBER=$((NUMBER + 1)) WRITTEN=0 RAN=''
  printf '%s\n' "$1" >"$T/$NUMBER.id"
  printf '%s\n' "$5" >"$T/$NUMBER.undo"
  printf '%s\n' "$6" >"$T/$NUMBER.served"
  echo skipped >"$T/$NUMBER.status"
  if [ "$STATE" = going ] && [ -n "$STOPPED" ]; then STATE=stopped; fi
  if [ "$STATE" != going ]; then
    tell "skipped $NUMBER/$STEPS $1"
    return
  fi
  tell "$NUMBER/$STEPS $1: $(printf %s "$3" | visible)"
  add "$2"
  if "$4"; then
    printf '%s\n' "$RAN" >"$T/$NUMBER.ran"
    echo 'done' >"$T/$NUMBER.status"
    step_end "$1" 'done' ''
    return
  fi
  STATE=failed reason=$WHY
  printf 'gpunode: %s failed: %s\n' "$1" "$reason" >&2
  if roll_back "$NUMBER" "$5"; then
    tell "$1: rolled back"
    echo failed >"$T/$NUMBER.status"
    step_end "$1" failed "$reason"
  else
    STATE=broken
    printf 'gpunode: %s: the rollback failed too: %s\n' "$1" "$FAULT" >&2
    echo rollback-failed >"$T/$NUMBER.status"
    step_end "$1" rollback-failed "$reason; the rollback failed too: $FAULT"
  fi
}

# What was done for steps that were not done goes back, newest first: no repository stays without its packages.
roll_back_servants() {
  number=$STEPS
  while [ "$number" -gt 0 ]; do
    served=$(cat "$T/$number.served")
    if [ -n "$served" ] && [ "$(cat "$T/$number.status")" = 'done' ] && ! any_done "$served"; then
      id=$(cat "$T/$number.id")
      if RAN='' && roll_back "$number" "$(cat "$T/$number.undo")"; then
        tell "$id: rolled back, since what it serves was not done"
        echo undone >"$T/$number.status"
        step_end "$id" failed 'rolled back: what it serves was not done'
      else
        STATE=broken
        printf 'gpunode: %s: the rollback failed: %s\n' "$id" "$FAULT" >&2
        step_end "$id" rollback-failed "$FAULT"
      fi
    fi
    number=$((number - 1))
  done
}
any_done() { # NUMBERS
  for one in $1; do
    [ "$(cat "$T/$one.status")" != 'done' ] || return 0
  done
  return 1
}

inventory() { # for an undo, which must tell what came along from what was there
  [ -n "$NAMES" ] || return 0
  nothing_in
  ask gpunode_packages_inventory "$TOKEN" "$state/backup/$RUN/packages" "$NAMES"
}

work() {
  trap 'STOPPED=1; tell "stops after this step"' HUP INT TERM
  trap : PIPE # whoever read what is told may leave
  RUN=$(date -u +%Y%m%dT%H%M%SZ)-$$.1
  add "$(run_begin)"
  inventory || quit 1 "nothing was changed: $WHY"
  all_steps
  [ "$STATE" != failed ] || roll_back_servants
  case $STATE in going) status='done' ;; stopped) status=stopped ;; *) status=failed ;; esac
  add "{\"kind\": \"run-end\", \"run\": \"$RUN\", \"status\": \"$status\"}"
  nothing_in
  ask gpunode_commands_run "$TOKEN" "$PENDING" 1 || printf 'gpunode: %s\n' "$WHY" >&2
}

end() { # -> how the plan ends whose steps are all done
  [ -z "$ENDING" ] || tell "$(printf %s "$ENDING" | visible)"
  exit "$ENDS"
}

main() {
  case $#:${1:-} in 0: | 1:--show) show=1 ;; 1:--yes) show='' ;; *) usage ;; esac
  [ "$(id -u)" = 0 ] || quit 3 'this is for root'
  has_tools
  same_host
  umask 022
  T=$(umask 077 && mktemp -d) || quit 1 'no directory can be made for temporary files'
  trap leave EXIT
  running=$(gpunode_commands_list_detached)
  [ -z "$running" ] || quit 8 "a command of an earlier gpunode still runs on this host: $(printf %s "$running" | printable)"
  if [ -n "$show" ]; then look_at_lock; else take_lock; fi
  if settled; then
    tell 'nothing to do: this plan was carried out, and the host is as it left it'
    [ "$ENDS" != 6 ] || [ "$(sed -n 1p "$RECORD")" = "$(boot_id)" ] || exit 0 # the reboot was made since
    end
  fi
  left=$(interrupted)
  [ -z "$left" ] || quit 1 "a gpunode was interrupted on this host and its step is open ($(printf %s "$left" | printable)); gpunode setup --ssh goes on with it, this script does not; nothing was changed"
  each_file
  packages_as_seen
  [ -z "$CHANGED" ] || quit 7 "this host changed since its plan was made: $CHANGED; nothing was changed, make a new one"
  if [ -n "$show" ]; then
    printf '%s\n' "$SHOWN"
    tell 'the host is as this plan saw it; nothing was changed; --yes does it'
    exit 0
  fi
  work
  case $STATE in
    going) record; tell 'all steps are done'; end ;;
    broken) quit 5 'manual recovery is required: what could not be restored is named above' ;;
    stopped) quit 1 'stopped: what was done stays, the rest was not begun' ;;
    *) quit 1 'nothing stays of the step that failed; what was done before it stays' ;;
  esac
}
