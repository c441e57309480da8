# shellcheck shell=sh disable=SC2034,SC2154
# (What these functions find is read in probe.sh, and some of what they read comes from there or from effective.sh.)
# Who may be believed: the one notion of it on the host's side (facts/trust.py is the controller's). Sent before probe.sh
# and before verify.sh, the other script that asks daemons.
#
# A thing is *trusted* when nobody but root decides what it is: it and every directory on the way to it, links followed step
# by step, belong to root and only root writes them. Sticky does not help: in /tmp anybody may put a name that is not
# there yet. Who runs the probe without root trusts what is their own as well: they decide only about themselves.
# A *daemon of the host* runs as uid 0 throughout, in the host's pid, mount and user namespaces, from a trusted program.
# Only that is run, only its files are read with root's rights, only it counts as the engine. Everything else is named.
#
# Needs R (the root looked at), ME and MY_GROUP (who looks: `who`). Names that begin with t_ are its own.

NL='
'
CLOSED=$NL # real paths of directories and programs that were found trusted, a line each: one stat(1) for many of them
T_LINKS=20

who() { # -> ME and MY_GROUP
  ME=$(id 2>/dev/null) # uid=0(root) gid=0(root) groups=...
  MY_GROUP=${ME#*gid=}; MY_GROUP=${MY_GROUP%%[!0-9]*}
  ME=${ME#uid=}; ME=${ME%%[!0-9]*}
}

asks_a_program() { # FILE, a kubeconfig: a program would be run for its token. By any spelling that YAML has: escapes are refused whole
  grep -qE '[\\]|(^|[^A-Za-z0-9+/=])(exec|auth-provider)([^A-Za-z0-9+/=]|$)' "$1"
}

judge() { # MODE OWNER GROUP PATH, as stat's %f %u %g -> true: only root writes it; else BECAUSE
  MODE=$((0x$1)) OWNER=$2
  case $2 in
    0 | "$ME") ;;
    *) BECAUSE="belongs to uid $2"; return 1 ;;
  esac
  if [ $((MODE & 2)) != 0 ]; then BECAUSE='may be written by everybody'; return 1; fi
  [ $((MODE & 16)) != 0 ] || return 0
  if [ "$3" = 0 ]; then # these bits are the mask of an access list, where there is one (acl(5)): ls marks it
    case $(ls -ld "$R$4" 2>/dev/null) in
      ??????????+*) BECAUSE='may be written by those in its access list (getfacl)'; return 1 ;;
    esac
    return 0
  fi
  if [ "$ME" != 0 ] && [ "$3" = "$MY_GROUP" ]; then return 0; fi # their own group, as umask 002 makes it
  # Groups that are root's equals where they are: Debian's staff (Debian policy 9.1.2), and microk8s, whose members
  # rule the cluster (its snap makes args/ writable for them: chmod -R ug+rwX).
  case $4 in
    /usr/local | /usr/local/*) t_group=staff ;;
    /var/snap/microk8s/*) t_group='(snap_)?microk8s' ;;
    *) t_group= ;;
  esac
  if [ -n "$t_group" ] && grep -qE "^$t_group:[^:]*:$3:" "$R/etc/group" 2>/dev/null; then return 0; fi
  BECAUSE="may be written by the group $3"
  return 1
}

closed() { # real PATH of a directory, file or socket: only root writes it; else BECAUSE. MODE and OWNER, where it was looked up
  case $CLOSED in *"$NL$R$1$NL"*) MODE=0 OWNER=0; return 0 ;; esac
  t_entry=$(stat -c '%f %u %g' "$R$1" 2>/dev/null) || { BECAUSE='cannot be looked at'; return 1; }
  # shellcheck disable=SC2086  # three words
  judge $t_entry "$1" || return 1
  if [ -d "$R$1" ]; then CLOSED=$CLOSED$R$1$NL; fi
}

look_up() { # real PATHS that are no links: those that are trusted join CLOSED, with one stat for all. Needs T
  # EPOCH: the time in seconds since 1970, as it was when the shell made the file that stat writes to.
  stat -c '%f %u %g %Y %n' "$T/entries" "$@" >"$T/entries" 2>/dev/null
  while read -r t_mode t_owner t_group t_time t_name; do
    if [ "$t_name" = "$T/entries" ]; then EPOCH=$t_time; continue; fi
    # A set-uid program is looked at by itself: `own_program` wants to know.
    case $t_mode in a* | 8[4-9a-f]??) continue ;; esac
    if judge "$t_mode" "$t_owner" "$t_group" "${t_name#"$R"}"; then CLOSED=$CLOSED$t_name$NL; fi
  done <"$T/entries"
}

located() { # PATH -> true: nobody but root decides what stands there. REAL: where its links lead; else WHY_NOT
  # The thing itself is not judged: a file that a user owns in a directory of root's can only be that user's own.
  REAL='' t_left=$1 t_links=0 WHY_NOT=''
  case $1 in
    *"$NL"*) WHY_NOT='its path holds a line break'; return 1 ;;
    /*) ;;
    *) WHY_NOT='its path is not absolute'; return 1 ;;
  esac
  if ! closed /; then WHY_NOT="/ $BECAUSE"; return 1; fi
  while [ -n "$t_left" ]; do
    t_part=${t_left%%/*}
    case $t_left in */*) t_left=${t_left#*/} ;; *) t_left='' ;; esac
    case $t_part in
      '' | .) continue ;;
      ..) REAL=${REAL%/*}; continue ;;
    esac
    if [ -h "$R$REAL/$t_part" ]; then
      t_links=$((t_links + 1))
      if [ "$t_links" -gt "$T_LINKS" ]; then WHY_NOT="$1 leads through more than $T_LINKS links"; return 1; fi
      t_target=$(readlink "$R$REAL/$t_part" 2>/dev/null)
      case $t_target in
        *"$NL"*) WHY_NOT="the link $REAL/$t_part holds a line break"; return 1 ;;
        /*) REAL= ;;
      esac
      t_left=$t_target${t_left:+/$t_left}
      continue
    fi
    REAL=$REAL/$t_part
    if [ ! -d "$R$REAL" ]; then REAL=$REAL${t_left:+/$t_left}; return 0; fi # a file, or nothing that others could make
    if [ -n "$t_left" ] && ! closed "$REAL"; then WHY_NOT="$REAL $BECAUSE"; return 1; fi
  done
}

trusted() { # PATH of something that is there -> as `located`, and only root writes it
  located "$1" || return 1
  if [ ! -e "$R${REAL:-/}" ]; then WHY_NOT="$REAL is not there"; return 1; fi
  closed "${REAL:-/}" || { WHY_NOT="$REAL $BECAUSE"; return 1; }
}

program() { # PATH -> true: root may run it
  if [ -n "$1" ] && [ -f "$R$1" ] && [ -x "$R$1" ]; then trusted "$1"; else WHY_NOT="there is no program $1"; return 1; fi
}

find_kubectl() { # -> KUBECTL, the words that run one of root's; else WHY_NOT. It looks in BINS, where there are any
  for t_name in kubectl /var/lib/rancher/rke2/bin/kubectl /snap/microk8s/current/kubectl k3s k0s; do
    case $t_name in /*) t_bins=${t_name%/*} ;; *) t_bins=${BINS:-/usr/local/bin /usr/bin} ;; esac
    for t_bin in $t_bins; do
      t_bin=${t_bin#"$R"}/${t_name##*/}
      program "$t_bin" || continue
      KUBECTL=$R$t_bin
      case $t_name in k3s | k0s) KUBECTL="$KUBECTL kubectl" ;; esac
      return 0
    done
  done
  WHY_NOT='no kubectl of root is here'
  return 1
}

own_socket() { # PATH -> true: what listens there was put there by root, or nothing does. SOCKET_MODE: stat's %f, or ""
  SOCKET_MODE=''
  located "$1" || return 1
  [ -e "$R$REAL" ] || return 0
  t_entry=$(stat -c '%u %f' "$R$REAL" 2>/dev/null)
  SOCKET_MODE=${t_entry#* } t_entry=${t_entry%% *}
  case $t_entry in 0 | "$ME") return 0 ;; esac
  WHY_NOT="$1 belongs to uid $t_entry"
  return 1
}

own_program() { # EXE of a running process, as its link says -> true: only root decides what runs there
  # " (deleted)": a package upgrade replaces a running daemon's file; what stands there now is judged by itself.
  located "$1" || return 1
  [ -e "$R$REAL" ] || return 0
  closed "$REAL" || { WHY_NOT="its program $REAL $BECAUSE"; return 1; }
  # Whoever starts a set-uid program chooses its name and its arguments.
  if [ $((MODE & 3072)) != 0 ]; then WHY_NOT="its program $REAL is set-uid"; return 1; fi
}

# ---- namespaces

namespaces() { # PIDS, in $R/proc: which of them are not where we are -> FOREIGN and SEEN, words "PID:pid", "PID:mnt"
  # A pid with a minus is a user's: no look at its root, which may be a file system of theirs.
  FOREIGN=' ' SEEN=' ' t_pid=' ' t_mnt=' ' t_user=' ' t_root=' '
  for t_part in "$@"; do
    case $t_part in
      -*) set -- "$@" "${t_part#-}/ns/pid" "${t_part#-}/ns/user" ;;
      *) set -- "$@" "$t_part/ns/pid" "$t_part/ns/mnt" "$t_part/ns/user" "$t_part/root/." ;;
    esac
    shift
  done
  # Ours and those of process 1: a session may have a mount namespace of its own (pam_namespace).
  stat -Lc '%n %d:%i' self/ns/pid self/ns/mnt self/ns/user 1/ns/pid 1/ns/mnt 1/ns/user "$R/." "$@" >"$T/ns" 2>/dev/null
  while read -r t_part t_entry; do
    case $t_part in
      self/ns/pid | 1/ns/pid) t_pid="$t_pid$t_entry " ;;
      self/ns/mnt | 1/ns/mnt) t_mnt="$t_mnt$t_entry " ;;
      self/ns/user | 1/ns/user) t_user="$t_user$t_entry " ;;
      "$R/.") t_root="$t_root$t_entry " ;;
      *)
        t_name=${t_part%%/*}
        case $t_part in
          */ns/pid) t_name=$t_name:pid t_left=$t_pid ;;
          */ns/mnt) t_name=$t_name:mnt t_left=$t_mnt ;;
          */ns/user) t_name=$t_name:user t_left=$t_user ;;
          *) t_name=$t_name:root t_left=$t_root ;;
        esac
        SEEN="$SEEN$t_name "
        case $t_left in *" $t_entry "*) ;; *) FOREIGN="$FOREIGN$t_name " ;; esac
        ;;
    esac
  done <"$T/ns"
}

foreign() { case $FOREIGN in *" $1 "*) return 0 ;; esac; return 1; } # PID:pid
seen() { case $SEEN in *" $1 "*) return 0 ;; esac; return 1; }

system_service() { # FILE of `process`: init itself says that it belongs to a service of the system
  while read -r t_part; do
    t_name=${t_part#cgroup=/system.slice/}
    case $t_part:$t_name in
      *:*/*) ;;
      cgroup=/system.slice/*.service:*) grep -qxF "Id=$t_name" "$T/services.out" 2>/dev/null && return 0 ;;
    esac
  done <"$1"
  return 1
}

own_daemon() { # PID FILE EXE of a process of uid 0 -> true: it is a daemon of this host; else WHY_NOT
  if foreign "$1:pid"; then WHY_NOT='it runs in another pid namespace'; return 1; fi
  if foreign "$1:user"; then WHY_NOT='it runs in another user namespace'; return 1; fi
  if foreign "$1:mnt" || foreign "$1:root" || ! seen "$1:mnt"; then
    # Snaps, and services with directories of their own, have a mount namespace, and their unit tells whose they are.
    # Who may not read it (no root) goes by the unit as well.
    if ! system_service "$2"; then
      WHY_NOT='it runs in another mount namespace, as containers do'
      seen "$1:mnt" || WHY_NOT='its namespaces can be read by root only, and it is no service of the system'
      return 1
    fi
  fi
  if [ -n "$3" ]; then own_program "$3"; return $?; fi
  if [ "$ME" = 0 ]; then WHY_NOT='its program cannot be read'; return 1; fi
}

one_off() { # COMM FILE of `process`: a question (`containerd config dump`, ours or another probe's), and no daemon
  t_left='' t_name=''
  while read -r t_part; do
    case $t_part in arg=*) t_part=${t_part#arg=} ;; *) continue ;; esac
    case $1:$t_left:$t_part in
      *:*:--version | *:*:--help | *:*:-h | *:*:--validate | containerd:*:-v | dockerd:*:-v) return 0 ;;
      containerd:config:d* | containerd:config:migrate | containerd:*:publish | containerd:*:oci-hook) return 0 ;;
      crio:*crio:config | crio:*:wipe | crio:*:version | crio:*:status | crio:*:check) return 0 ;;
      k0s:*:controller | k0s:*:worker | rke2:*:server | rke2:*:agent) t_name=daemon ;;
      rke2:*:*\ server | rke2:*:*\ agent) t_name=daemon ;; # it writes its command line anew, as one word
    esac
    t_left=$t_part
  done <"$2"
  case $1 in k0s | rke2) [ -z "$t_name" ] && return 0 ;; esac
  return 1
}

# ---- with a user's rights

NO_WAY='it is read with the rights of its user, and neither setpriv nor python3 is here for that'

as_user() { # UID GID COMMAND...: nothing of root's goes with it, no file but its output, no word of the environment
  t_uid=$1 t_gid=$2; shift 2
  set -- env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C "$@"
  if [ "$ME" != 0 ]; then
    : # who has no root has none to lose
  elif find_program setpriv && "$FOUND" --reuid "$t_uid" --regid "$t_gid" --clear-groups true 2>/dev/null; then # not busybox's
    set -- "$FOUND" --reuid "$t_uid" --regid "$t_gid" --clear-groups --no-new-privs --inh-caps=-all "$@"
  elif find_program python3; then
    set -- "$FOUND" -I -c 'import os, sys
uid, gid = int(sys.argv[1]), int(sys.argv[2])
os.setgroups([]); os.setresgid(gid, gid, gid); os.setresuid(uid, uid, uid)
os.execvp(sys.argv[3], sys.argv[3:])' "$t_uid" "$t_gid" "$@"
  else
    echo "unreadable $NO_WAY"
    return 126
  fi
  # KILL: the user may stop what is theirs, and a stopped process does not hear TERM.
  if find_program timeout; then set -- "$FOUND" -s KILL 5 "$@"; fi
  "$@" </dev/null 2>/dev/null 3<&- 4<&-
}

briefly() { # COMMAND...: a look at what a user's process shows of itself, which may be a file system of theirs that hangs
  if find_program timeout; then set -- "$FOUND" -s KILL 2 "$@"; fi
  "$@" </dev/null 2>/dev/null 3<&- 4<&-
}

find_program() { # NAME -> FOUND: one of this system's own, also while another root is looked at
  for t_part in /usr/bin /bin /usr/sbin /sbin; do
    FOUND=$t_part/$1
    [ -f "$FOUND" ] && [ -x "$FOUND" ] && return 0
  done
  return 1
}

# Run by the user's shell: PATH LIMIT -> what it is in two lines, then the file.
USER_FILE='
if [ ! -e "$1" ] && [ -h "$1" ]; then echo "unreadable it is a symbolic link to a file that is missing"
elif [ ! -e "$1" ]; then echo absent
elif [ ! -f "$1" ]; then echo "unreadable not a regular file"
elif [ ! -r "$1" ]; then echo "unreadable permission denied"
else
  echo "found $(stat -Lc %a "$1" 2>/dev/null)"
  if [ -h "$1" ]; then readlink -f "$1" | head -n 1; else echo; fi
  head -c "$2" "$1"
fi'

do_user_file() { # UID GID PATH: that file with that user's rights
  as_user "$1" "$2" sh -c "$USER_FILE" sh "$R$3" "$((FILE_LIMIT + 1))" | head -c "$((FILE_LIMIT + 8192))"
}

do_user_docker() { # UID GID SOCKET: docker's GET /info with that user's rights, a megabyte at most
  if find_program curl; then # -q: no curlrc of theirs
    as_user "$1" "$2" "$FOUND" -q --silent --fail --max-time 4 --unix-socket "$3" http://localhost/info | head -c 1048576
  elif find_program python3; then
    as_user "$1" "$2" "$FOUND" -I -c "$gpunode_http_client" "$3" /info | head -c 1048576
  else
    return 127
  fi
}
