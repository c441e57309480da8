# shellcheck shell=sh
# The host's daemons among the processes: which are trusted, and what they were started with.

NAMED_LIMIT=20 # processes that were ignored
USERS_LIMIT=16 # engines of users

candidates() { # PID COMM of all that are called like a container daemon; any user may call a process so. $T/mps: MPS' own
  : >"$T/mps"; mps=0
  for path in "$R"/proc/[0-9]*; do
    word "$path/comm"
    case $WORD in
      dockerd | containerd | kubelet | crio | k3s-server | k3s-agent | rke2 | k0s | kubelite) ;;
      containerd-shim | containerd-shim*) WORD=shim ;;
      nvidia-cuda-mps*) mps_process "$path" >>"$T/mps" 2>/dev/null; continue ;;
      *) continue ;;
    esac
    printf '%s %s\n' "${path##*/}" "$WORD"
  done
}

mps_process() { # its directory in /proc -> PID UID, and "host" or "container", by the pid namespaces that it is in
  mps=$((mps + 1))
  [ "$mps" -le "$NAMED_LIMIT" ] || return 0
  namespaces_of "$R/proc/self/status"; own=$DEPTH
  namespaces_of "$1/status"
  if [ "$DEPTH" -gt "$own" ]; then where=container; else where=host; fi
  printf '%s %s %s\n' "${1##*/}" "$OWNER" "$where"
}

namespaces_of() { # FILE of /proc/PID/status -> OWNER, its real uid, and DEPTH, in how many pid namespaces it is
  OWNER=- DEPTH=1
  while read -r key first rest; do
    case $key in
      Uid:) OWNER=$first ;;
      NSpid:) for _ in $rest; do DEPTH=$((DEPTH + 1)); done ;;
    esac
  done <"$1"
}

owners() { # of $T/candidates: PID COMM PPID UID GID 1|0 (its parent is called the same), without those in containers; $T/shim_pids: root's shims
  set -- self/status
  while read -r pid _; do set -- "$@" "$pid/status"; done <"$T/candidates"
  grep -sHE '^(PPid|Uid|Gid|NSpid):' "$@" >"$T/status"
  # NSpid counts the pid namespaces that a process is in, that of this grep too. Any of the four uids: set-uid programs.
  awk -v shims="$T/shim_pids" '
    NR == FNR { comm[$1] = $2; list[++count] = $1; next }
    { split($1, word, /[\/:]/); pid = word[1] }
    word[3] == "PPid" { parent[pid] = $2 }
    word[3] == "Gid" { gid[pid] = $2 }
    word[3] == "NSpid" { depth[pid] = NF }
    word[3] == "Uid" { owner[pid] = 0; for (i = 5; i > 1; i--) if ($i != 0) owner[pid] = $i }
    END {
      own = ("self" in depth) ? depth["self"] : 2
      for (i = 1; i <= count; i++) {
        pid = list[i]
        if (!(pid in owner) || (pid in depth) && depth[pid] > own) continue
        if (comm[pid] == "shim") { if (owner[pid] == 0) print pid >shims; continue }
        # the containerd of a rootless dockerd belongs to that one
        if (owner[pid] != 0 && comm[parent[pid]] == "dockerd" && owner[parent[pid]] == owner[pid]) continue
        print pid, comm[pid], parent[pid], owner[pid], gid[pid], comm[parent[pid]] == comm[pid]
      }
    }' "$T/candidates" "$T/status"
}

processes() { # -> $T/processes, PID COMM of the host's daemons and of rootless dockerds; $T/ignored: PID UID COMM WHY
  : >"$T/processes"; : >"$T/ignored"; : >"$T/shim_pids"
  candidates >"$T/candidates"
  [ -s "$T/candidates" ] && cd "$R/proc" || return 0
  owners >"$T/owners"
  set --
  users=0
  while read -r pid comm _ uid _; do
    case $uid:$comm in
      0:*) set -- "$@" "$pid" ;;
      *:dockerd) users=$((users + 1)); [ "$users" -le "$USERS_LIMIT" ] && set -- "$@" "-$pid" ;;
    esac
  done <"$T/owners"
  namespaces "$@"
  cd / || return 0
  chroot='' named=0 users=0
  if [ "$SETTING" = image ]; then chroot=1; fi
  while read -r pid comm ppid uid gid alike <&3; do
    if [ "$uid" != 0 ]; then
      users_daemon && printf '%s %s\n' "$pid" "$comm" >>"$T/processes"
      continue
    fi
    # A chroot sees the daemons of the machine it is built on, and their root is another.
    if [ -n "$chroot" ] && { foreign "$pid:root" || ! seen "$pid:root"; }; then continue; fi
    process
    one_off "$comm" "$T/process:$pid" && continue
    passing && continue
    if ! its_program; then ignored "its program is $exe, and no $comm"; continue; fi
    if own_daemon "$pid" "$T/process:$pid" "$exe"; then
      printf '%s %s\n' "$pid" "$comm" >>"$T/processes"
    else
      ignored "$WHY_NOT"
    fi
  done 3<"$T/owners"
}

passing() { # true: one that has ended, or a daemon's child that is about to run something else
  if [ -z "$exe" ]; then value_of "$T/process:$pid" arg; [ -z "$VALUE" ]; return $?; fi
  [ "$alike" = 1 ] || return 1
  parent=$(readlink "$R/proc/$ppid/exe" 2>/dev/null)
  [ "${parent%" (deleted)"}" = "$exe" ]
}

its_program() { # of comm and exe: a script called containerd runs the shell, and sleep runs under any name
  case $comm:${exe##*/} in
    *:) return 0 ;; # it cannot be read
    containerd:k3s | k3s-*:k3s | k3s-*:containerd) return 0 ;; # one program under all names, itself under either
    kubelet:hyperkube | *:qemu-*) return 0 ;;
  esac
  case ${exe##*/} in *"$comm"*) return 0 ;; esac
  return 1
}

ignored() { # WHY
  named=$((named + 1))
  [ "$named" -le "$NAMED_LIMIT" ] && printf '%s %s %s %s\n' "$pid" "$uid" "$comm" "$1" >>"$T/ignored"
}

users_daemon() { # true: a rootless dockerd, with its process:PID
  if [ "$comm" != dockerd ]; then ignored "it belongs to uid $uid"; return 1; fi
  users=$((users + 1))
  if [ "$users" -gt "$USERS_LIMIT" ]; then ignored "it belongs to uid $uid, and $USERS_LIMIT of its kind were read"; return 1; fi
  if [ -n "$chroot" ]; then ignored "it belongs to uid $uid, and this is a chroot"; return 1; fi
  if foreign "$pid:pid"; then ignored "it belongs to uid $uid and runs in a container"; return 1; fi
  # rootlesskit gives every one its own, where its user is root
  if seen "$pid:user" && ! foreign "$pid:user"; then
    ignored "it belongs to uid $uid and has no user namespace of its own, as a rootless dockerd has"
    return 1
  fi
  process
}

process() { # of pid, comm, ppid, uid, gid -> $T/process:PID, and exe
  exe=$(readlink "$R/proc/$pid/exe" 2>/dev/null)
  exe=${exe%" (deleted)"}
  case $exe in *"$NL"*) exe= ;; esac
  {
    printf 'comm=%s\nppid=%s\n' "$comm" "$ppid"
    [ "$uid" = 0 ] || process_of_user
    [ -n "$exe" ] && printf 'exe=%s\n' "$exe"
    started_at
    cgroups
    if [ "$uid" = 0 ]; then head -c 65536 "$R/proc/$pid/cmdline" 2>/dev/null
    else briefly head -c 65536 "$R/proc/$pid/cmdline"; fi | tr '\0' '\n' | sed 's/^/arg=/'
    [ "$uid$comm" != 0containerd ] || config_of_rancher
  } >"$T/process:$pid"
}

config_of_rancher() { # of k3s or rke2, whose containerd inherits it; no other word of its environment, and no address, which may hold a password
  head -c 65536 "$R/proc/$pid/environ" | tr '\0' '\n' |
    sed -n 's|^K3S_CONFIG_FILE=/|config_file=/|p; s|^K3S_CONFIG_FILE=[^/].*|config_file=URL|p; s|^RKE2_CONFIG_FILE=/|config_file=/|p; s|^RKE2_CONFIG_FILE=[^/].*|config_file=URL|p'
} 2>/dev/null

cgroups() { # of pid, each once
  known=$NL
  while IFS= read -r line; do
    line=${line#*:}; line=${line#*:}
    case $known in *"$NL$line$NL"*) continue ;; esac
    known=$known$line$NL
    printf 'cgroup=%s\n' "$line"
  done <"$R/proc/$pid/cgroup"
} 2>/dev/null

started_at() { # of pid: seconds since 1970; its 22nd number counts hundredths of seconds since boot (proc(5))
  read -r word <"$R/proc/$pid/stat" || return 0
  : "${BOOT:=$(sed -n 's/^btime //p' "$R/proc/stat")}"
  # shellcheck disable=SC2086  # numbers; the name before them may hold blanks
  set -- ${word##*) }
  if [ -n "$BOOT" ] && [ $# -ge 20 ]; then shift 19; echo "started_at=$((BOOT + $1 / 100))"; fi
} 2>/dev/null

process_of_user() { # a rootless dockerd: whose, and where that user's files are
  printf 'uid=%s\ngid=%s\n' "$uid" "$gid"
  awk -F: -v uid="$uid" '$3 == uid { print "user=" $1; print "home=" $6; exit }' "$R/etc/passwd" 2>/dev/null
  # Its own setting of the directories, and nothing else of its environment.
  briefly head -c 65536 "$R/proc/$pid/environ" | tr '\0' '\n' |
    sed -n 's/^HOME=/env_&/p; s/^XDG_CONFIG_HOME=/env_&/p; s/^XDG_RUNTIME_DIR=/env_&/p'
  # Its /etc holds links to the names that were there when it started, and no later ones.
  # shellcheck disable=SC2016
  briefly sh -c '[ -d "$1" ] && [ ! -d "$2" ] && [ ! -h "$2" ] && echo sees_toolkit=0' sh \
    "$R/proc/$pid/root/etc" "$R/proc/$pid/root/etc/nvidia-container-runtime"
}

shims() { # containers per containerd namespace: "moby", "k8s.io"
  [ -s "$T/shim_pids" ] || return 0
  set --
  while read -r pid; do set -- "$@" "$R/proc/$pid/cmdline"; done <"$T/shim_pids"
  cat "$@" 2>/dev/null | tr '\0' '\n' | sed -n '/^-namespace$/{n;p;}'
}
