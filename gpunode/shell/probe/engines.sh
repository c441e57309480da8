# shellcheck shell=sh
# Container engines and NVIDIA's toolkit: files, and what running daemons report.

IMPORTS_LIMIT=100 # files, and levels of files that name files

option() { # FILE LONG SHORT -> VALUE of an option among the arg= lines of a process; the last one counts
  VALUE='' option=''
  [ -r "$1" ] || return 0
  while IFS= read -r line; do
    case $line in arg=*) line=${line#arg=} ;; *) option=; continue ;; esac
    if [ -n "$option" ]; then VALUE=$line option=; continue; fi
    case $line in
      "-$2="* | "--$2="*) VALUE=${line#*=} ;;
      "-$2" | "--$2") option=1 ;;
      "-$3") [ -z "$3" ] || option=1 ;;
      "-$3="*) VALUE=${line#*=} ;;
    esac
  done <"$1"
}

absolute() { # PID PATH -> VALUE: a relative path is relative to where the process stands
  VALUE=$2
  case $2 in
    /*) ;;
    *) VALUE=$(readlink "$R/proc/$1/cwd" 2>/dev/null)/$2 ;;
  esac
}

exec_starts() { # of the units that may start an engine: ExecStart as arg= lines in $T/unit-NAME (words; good enough for a path)
  for name in containerd docker crio kubelet; do : >"$T/unit-$name"; done
  [ -s "$T/services.out" ] || return 0
  # systemd prints what is a service's own before what any unit has: Id stands behind ExecStart.
  awk -v folder="$T/unit-" '
    function done_with(  one, i, count, words) {
      if (unit ~ /^(containerd|docker|crio|kubelet)\.service$/) {
        sub(/\.service$/, "", unit)
        for (one = 1; one <= starts; one++) {
          count = split(start[one], words, / /)
          for (i = 1; i <= count; i++) print "arg=" words[i] >(folder unit)
        }
      }
      unit = ""; starts = 0
    }
    /^Id=/ { unit = substr($0, 4) }
    /^$/ { done_with() }
    /^ExecStart=.*argv\[\]=/ { sub(/^ExecStart=.*argv\[\]=/, ""); if (sub(/ ;.*/, "")) start[++starts] = $0 }
    END { done_with() }
  ' "$T/services.out"
}

unit_variables() { # NAME: in $T/unit-NAME, words that are a variable become what its environment has; those that root alone does not decide stay
  grep -q '^arg=.*[$]' "$T/unit-$1" || return 0
  job "$1:environment" 5 systemctl show --no-pager -p Environment -p EnvironmentFiles "$1.service"
  finish "$1:environment"
  [ "$RC" = 0 ] || return 0
  : >"$T/environment"
  while IFS= read -r line; do
    case $line in EnvironmentFile*"="*" (ignore_errors="*) ;; *) continue ;; esac
    path=${line#*=} path=${path%" (ignore_errors="*}
    case $path in *[*?[]*) return 0 ;; esac
    if located "$path" && [ ! -e "$R$path" ]; then continue; fi
    trusted "$path" && [ -f "$R$path" ] && [ -r "$R$path" ] || return 0
    { head -c "$FILE_LIMIT" "$R$path"; echo; } >>"$T/environment"
  done <"$T/$1:environment.out"
  # systemd.exec(5): a file's word counts, and of two the later one. systemd.service(5): $A alone is parted at blanks, ${A} is not.
  awk '
    FILENAME ~ /environment.out$/ { if (sub(/^Environment=/, "")) inline = inline " " $0; next }
    FILENAME ~ /environment$/ {
      if (!match($0, /^[ \t]*[A-Za-z_][A-Za-z0-9_]*=/)) next
      name = substr($0, 1, RLENGTH - 1); value = substr($0, RLENGTH + 1); sub(/^[ \t]*/, "", name)
      sub(/^[ \t]+/, "", value); sub(/[ \t\r]+$/, "", value)
      if (value ~ /^"[^"]*"$/ || value ~ /^\047[^\047]*\047$/) value = substr(value, 2, length(value) - 2)
      has[name] = value; plain[name] = value !~ /["\047\\]/; next
    }
    {
      name = $0; whole = 0
      if (sub(/^arg=[$][{]/, "", name) && sub(/[}]$/, "", name)) whole = 1
      else { name = $0; sub(/^arg=[$]/, "", name) }
      if ($0 !~ /^arg=[$]/ || name !~ /^[A-Za-z_][A-Za-z0-9_]*$/) { print; next }
      if (!(name in has)) { if (index(inline, name "=")) print; next }
      if (!plain[name]) { print; next }
      if (whole) { print "arg=" has[name]; next }
      count = split(has[name], words, /[ \t]+/)
      for (i = 1; i <= count; i++) if (words[i] != "") print "arg=" words[i]
    }' "$T/$1:environment.out" "$T/environment" "$T/unit-$1" >"$T/words" && mv "$T/words" "$T/unit-$1"
}

binary_of() { # FILE of a process or a unit -> VALUE: its program
  value_of "$1" exe
  [ -n "$VALUE" ] || value_of "$1" arg
}

imports() { # FILE on the host: what its top-level `imports` names, globs expanded
  located "$1" && [ -f "$R$1" ] || return 0
  head -c "$FILE_LIMIT" "$R$1" 2>/dev/null | awk '/^[ \t]*\[/ && !on { exit }
    /^[ \t]*imports[ \t]*=/ { on = 1 }
    on { line = $0; sub(/^[ \t]*#.*/, "", line)
      while (match(line, /"[^"]*"|\047[^\047]*\047/)) { print substr(line, RSTART + 1, RLENGTH - 2); line = substr(line, RSTART + RLENGTH) }
      if (line ~ /\]/) exit }' | while read -r pattern; do
    case $pattern in /*) ;; *) pattern=${1%/*}/$pattern ;; esac
    hidden=
    case $pattern in */\**) hidden=${pattern%/*}/.${pattern##*/} ;; esac # Go's star takes a leading dot, too
    IFS= # a blank in a name parts nothing
    for path in $R$pattern ${hidden:+$R$hidden}; do
      [ -e "$path" ] && printf '%s\n' "${path#"$R"}"
    done
  done
}

files_of() { # KEY CONFIG -> $T/KEY:files, it and what it imports; false: some of it may not be read with root's rights
  printf '%s\n' "$2" >"$T/$1:files"
  located "$2" || return 1
  imports "$2" | head -n "$IMPORTS_LIMIT" >"$T/level"
  open='' listed=1
  while [ -s "$T/level" ]; do # nested imports; a file already listed ends the walk
    : >"$T/deeper"
    while read -r path <&4; do
      grep -qxF -- "$path" "$T/$1:files" && continue
      listed=$((listed + 1))
      if [ "$listed" -gt "$IMPORTS_LIMIT" ]; then open=1; break; fi
      printf '%s\n' "$path" >>"$T/$1:files"
      if located "$path" && [ -f "$R$path" ]; then imports "$path" | head -n "$IMPORTS_LIMIT" >>"$T/deeper"; else open=1; fi
    done 4<"$T/level"
    mv "$T/deeper" "$T/level"
  done
  [ -z "$open" ]
}

engine_containerd() { # PID CONFIG SOCKET BINARY: its files now, its answers in the background
  key=containerd:$1 whole=
  files_of "$key" "$2" && whole=1
  while IFS= read -r path; do printf '%s\n' "$path"; done <"$T/$key:files" >>"$T/wanted"
  # Where a drop-in would go, and what an import of that directory would activate.
  for path in "$R${2%/*}"/conf.d/*.toml "$R${2%/*}"/conf.d/.*.toml; do
    [ -f "$path" ] && printf '%s\n' "${path#"$R"}" >>"$T/wanted"
  done
  # what a distribution writes this config from, at every start
  for path in "$R${2%/*}"/*.tmpl "$R${2%/*}/containerd-template.toml"; do
    if [ -f "$path" ]; then printf '%s\n' "${path#"$R"}" >>"$T/wanted"; fi
  done
  echo "$key:files" >>"$T/late"
  if program "$4"; then
    job "$key:version" 5 "$R$4" --version
    # It starts the one in PATH; a Kubernetes distribution, whose programs are in none of its directories, its own.
    TOOL=
    case " $BINS " in *" $R${4%/*} "*) ;; *) if program "${4%/*}/runc"; then TOOL=$R${4%/*}/runc; fi ;; esac
    [ -n "$TOOL" ] || find_tool runc || TOOL=
    if [ -n "$TOOL" ]; then
      job "$key:runc" 5 "$TOOL" --version
      echo "$key:runc" >>"$T/slow"
    fi
    # It reads all that the file imports, with root's rights.
    if [ -n "$whole" ] && [ -f "$R$2" ] && [ -r "$R$2" ]; then
      job "$key:dump" 5 "$R$4" --config "$R$2" config dump
      echo "$key:dump" >>"$T/slow"
    fi
    echo "$key:version" >>"$T/slow"
  fi
  if [ "$1" != 0 ]; then
    ask "$key:cri" 6 "$3" gpunode_cri_status "$R$3"
    ask "$key:plugins" 6 "$3" ctr -a "$R$3" plugins ls -d id==cri type==io.containerd.cri.v1
    printf '%s\n' "$key $3" >>"$T/sockets"
  fi
}

grpc_address() { # of a config.toml: in its table, which version 4 calls otherwise, or behind grpc at the top
  awk '
    /^[ \t]*\[/ { table = $0; sub(/#.*/, "", table); gsub(/[ \t"\047]/, "", table); next }
    ((table == "[grpc]" || table == "[plugins.io.containerd.server.v1.grpc]") && match($0, /^[ \t]*address[ \t]*=[ \t]*["\047]/)) ||
    (table == "" && match($0, /^[ \t]*grpc[ \t]*([.][ \t]*|=[ \t]*[{]([^}]*,)?[ \t]*)address[ \t]*=[ \t]*["\047]/)) {
      quote = substr($0, RSTART + RLENGTH - 1, 1); value = substr($0, RSTART + RLENGTH)
      if (end = index(value, quote)) print substr(value, 1, end - 1)
      exit
    }'
}

engine_option() { # ARGS_FILE CONFIG -> SOCKET
  option "$1" address a
  SOCKET=$VALUE
  if [ -z "$SOCKET" ] && located "$2" && [ -f "$R$2" ]; then
    SOCKET=$(head -c "$FILE_LIMIT" "$R$2" 2>/dev/null | grpc_address)
  fi
  SOCKET=${SOCKET:-/run/containerd/containerd.sock}
}

container_engines() {
  : >"$T/wanted"; : >"$T/late"; : >"$T/slow"; : >"$T/sockets"; : >"$T/user_files"
  docker_pid='' docker_pids='' containerd_pid='' rootless_pids=''
  while read -r pid comm <&3; do
    echo "process:$pid" >>"$T/late"
    [ "$comm" = dockerd ] || continue
    value_of "$T/process:$pid" uid
    if [ -n "$VALUE" ]; then rootless_pids="$rootless_pids $pid"; continue; fi
    # Of several, the one of docker's own unit, else the first: file, socket and process are those of one.
    if [ -z "$docker_pid" ] || grep -qE '^cgroup=.*/docker\.service$' "$T/process:$pid"; then docker_pid=$pid; fi
    docker_pids="$docker_pids $pid"
  done 3<"$T/processes"
  while read -r pid comm <&3; do
    [ "$comm" = containerd ] || continue
    one=$T/process:$pid
    # dockerd's own containerd is dockerd's business
    value_of "$one" ppid
    case " $docker_pids $rootless_pids " in *" $VALUE "*) continue ;; esac
    option "$one" config c
    absolute "$pid" "${VALUE:-/etc/containerd/config.toml}"
    config=$VALUE
    case $config in */docker/containerd/containerd.toml) continue ;; esac
    engine_option "$one" "$config"
    binary_of "$one"
    containerd_pid=$pid
    engine_containerd "$pid" "$config" "$SOCKET" "$VALUE"
  done 3<"$T/processes"
  if [ -z "$containerd_pid" ]; then
    option "$T/unit-containerd" config c
    config=${VALUE:-/etc/containerd/config.toml}
    engine_option "$T/unit-containerd" "$config"
    binary_of "$T/unit-containerd"
    binary=$VALUE
    if [ -z "$binary" ] && find_tool containerd; then binary=${TOOL#"$R"}; fi
    if [ -n "$binary" ]; then engine_containerd 0 "$config" "$SOCKET" "$binary"; fi
  fi
  engine_docker
  for pid in $rootless_pids; do engine_rootless "$pid"; done
  engine_crio
  for distribution in k3s rke2 k0s; do
    find_tool "$distribution" || continue
    if [ "$distribution" = k0s ]; then job k0s:version 5 "$TOOL" version; else job "$distribution:version" 5 "$TOOL" --version; fi
    echo "$distribution:version" >>"$T/slow"
  done
  for path in /snap /var/lib/snapd/snap; do # the words of `microk8s version`, whose program needs a snapd that answers
    path=$path/microk8s/current/meta/snap.yaml
    trusted "$path" && [ -f "$R$path" ] && [ -r "$R$path" ] || continue
    head -c 65536 "$R$path" | sed -n "/^version:/{s/[\"']//g;s/^version:/MicroK8s/p;}" >"$T/microk8s:version"
    echo microk8s:version >>"$T/late"
    break
  done
  if find_tool podman; then
    job podman 8 do_podman "$TOOL"
    echo podman >>"$T/slow"
  fi
}

engine_crio() {
  one=$T/unit-crio crio_pid=''
  while read -r pid comm <&3; do
    if [ "$comm" = crio ]; then crio_pid=$pid one=$T/process:$pid; fi
  done 3<"$T/processes"
  binary_of "$one"
  binary=$VALUE
  if [ -z "$binary" ] && find_tool crio; then binary=${TOOL#"$R"}; fi
  [ -n "$binary" ] || return 0
  option "$one" config c; config=${VALUE:-/etc/crio/crio.conf}
  option "$one" config-dir d; directory=${VALUE:-/etc/crio/crio.conf.d}
  option "$one" listen ''; SOCKET=${VALUE:-/var/run/crio/crio.sock}
  printf 'config=%s\nfolder=%s\nsocket=%s\nbinary=%s\n' "$config" "$directory" "$SOCKET" "$binary" >"$T/crio"
  echo crio >>"$T/late"
  # CRI-O reads the files of its drop-ins' directory and of every directory below.
  { printf '%s\n' "$R$config"; find -H "$R$directory" ! -type d 2>/dev/null | head -n 1000; } | while IFS= read -r path; do
    if [ -e "$path" ]; then printf '%s\n' "${path#"$R"}" >>"$T/wanted"; fi
  done
  if program "$binary"; then
    job crio:version 5 "$R$binary" --version
    echo crio:version >>"$T/slow"
  fi
  if [ -n "$crio_pid" ]; then
    ask crio:config 6 "$SOCKET" gpunode_crio_config "$R$SOCKET"
  fi
}

do_podman() { # PODMAN: its version, and its default runtime for root
  "$1" --version || return $?
  # The first podman of root makes the storage; the probe must not.
  [ -e "$R/var/lib/containers/storage/db.sql" ] || [ -e "$R/var/lib/containers/storage/libpod" ] || return 0
  "$1" info --format 'default={{.Host.OCIRuntime.Name}}' || return $?
  "$1" --runtime nvidia info --format 'known={{.Host.OCIRuntime.Name}}' 2>/dev/null
  return 0
}

engine_files() { # configuration of other engines that is merged from several files
  for path in "$R"/etc/crio/conf.d/99-nvidia.toml "$R"/etc/rancher/k3s/config.yaml "$R"/etc/rancher/k3s/config.yaml.d/* "$R"/etc/rancher/rke2/config.yaml \
    "$R"/etc/rancher/rke2/config.yaml.d/* "$R"/var/lib/rancher/k3s/agent/etc/containerd/*.tmpl \
    "$R"/var/lib/rancher/rke2/agent/etc/containerd/*.tmpl "$R"/etc/k0s/containerd.toml "$R"/etc/k0s/containerd.d/*.toml \
    "$R"/var/snap/microk8s/current/args/containerd-template.toml "$R"/var/snap/microk8s/current/args/kubelet "$R"/etc/containers/containers.conf \
    "$R"/etc/containers/containers.conf.d/* "$R"/root/.config/containers/containers.conf \
    "$R"/root/.config/containers/containers.conf.d/*; do
    [ -e "$path" ] && printf '%s\n' "${path#"$R"}"
  done
  # The distribution's own one is a manual of 30 KiB with every line commented out.
  path=/usr/share/containers/containers.conf
  [ -f "$R$path" ] && [ -r "$R$path" ] && grep -qE '^[[:space:]]*(runtime[[:space:]]*=|nvidia)' "$R$path" && printf '%s\n' "$path"
  return 0
}

engine_rootless() { # PID: a user's own dockerd
  one=$T/process:$1
  option "$one" config-file ''
  config=$VALUE
  value_of "$one" uid; uid=$VALUE
  value_of "$one" gid; gid=$VALUE
  value_of "$one" env_XDG_CONFIG_HOME; directory=$VALUE
  value_of "$one" env_HOME; home=$VALUE
  [ -n "$home" ] || { value_of "$one" home; home=$VALUE; }
  absolute "$1" "${config:-${directory:-${home:-/home/$uid}/.config}/docker/daemon.json}"
  config=$VALUE
  value_of "$one" env_XDG_RUNTIME_DIR
  directory=${VALUE:-/run/user/$uid}
  docker_hosts "$one" >"$T/hosts"
  listens "$directory/docker.sock" <"$T/hosts"
  printf 'config=%s\nsocket=%s\n' "$config" "$SOCKET" >"$T/docker:$1"
  echo "docker:$1" >>"$T/late"
  # Named by a user: read and asked with the rights of that user.
  printf '%s %s\n' "docker:$1:file" "$config" >>"$T/user_files"
  job "docker:$1:file" 6 do_user_file "$uid" "$gid" "$config"
  job "docker:$1:info" 6 do_user_docker "$uid" "$gid" "$R$SOCKET"
  echo "docker:$1:info" >>"$T/slow"
}

docker_hosts() { # FILE of a process or a unit: what -H and --host name, in each of pflag's spellings
  [ -r "$1" ] || return 0
  sed -n 's/^arg=//p' "$1" | awk '
    value { print; value = 0; next }
    $0 == "-H" || $0 == "--host" { value = 1; next }
    sub(/^--host=/, "") || sub(/^-H=?/, "")'
}

listens() { # DEFAULT, with hosts on stdin -> SOCKET: the first path of them. What systemd listens on (fd://) is the default
  SOCKET=$1 found=''
  while IFS= read -r line; do
    case $line in
      fd://*) SOCKET=$1 found=1 ;;
      unix:///*) if [ -z "$found" ]; then SOCKET=${line#unix://} found=1; fi ;;
    esac
  done
}

engine_docker() {
  one=$T/unit-docker
  if [ -n "$docker_pid" ]; then one=$T/process:$docker_pid; else unit_variables docker; fi
  option "$one" config-file ''
  absolute "${docker_pid:-0}" "${VALUE:-/etc/docker/daemon.json}"
  config=$VALUE
  docker_hosts "$one" >"$T/hosts"
  if [ ! -s "$T/hosts" ] && located "$config" && [ -f "$R$config" ]; then # dockerd takes no hosts in both places
    head -c "$FILE_LIMIT" "$R$config" 2>/dev/null | tr -d '\n' | grep -oE '"hosts"[[:space:]]*:[[:space:]]*\[[^]]*\]' |
      grep -oE '"(unix|fd):[^"]*"' | sed 's/"//g; s|\\/|/|g' >"$T/hosts"
  fi
  listens /var/run/docker.sock <"$T/hosts"
  binary_of "$one"
  binary=$VALUE
  if [ -z "$binary" ] && find_tool dockerd; then binary=${TOOL#"$R"}; fi
  printf 'config=%s\nsocket=%s\nbinary=%s\n' "$config" "$SOCKET" "$binary" >"$T/docker"
  if [ -n "$docker_pid" ]; then echo "pid=$docker_pid"; else cat "$one"; fi >>"$T/docker"
  echo docker >>"$T/late"
  printf '%s\n' "$config" >>"$T/wanted"
  if [ -n "$docker_pid" ]; then
    ask docker:info 6 "$SOCKET" gpunode_docker_info "$R$SOCKET"
    ask docker:running 6 "$SOCKET" do_docker_running "$R$SOCKET"
  elif program "$binary"; then
    job docker:version 5 "$R$binary" --version
    echo docker:version >>"$T/slow"
  fi
}

do_docker_running() { # SOCKET: the names of some containers that run; nothing else of them, which may be secret
  # filters={"status":["running"]}
  gpunode_http_get "$1" '/containers/json?limit=20&filters=%7B%22status%22%3A%5B%22running%22%5D%7D' |
    head -c 4194304 | grep -oE '"Names":\["/[A-Za-z0-9_.-]+"' | sed 's|.*/||; s|"$||'
}

handler_paths() { # PATH 1|0: NVIDIA's, runc and crun, as engines' and the toolkit's files name them; whether they can be run
  wanted=$NL/etc/nvidia-container-runtime/config.toml$NL
  while IFS= read -r path; do wanted=$wanted$path$NL; done <"$T/wanted"
  set --
  while IFS= read -r line; do # of those in the answer
    size=${line%% *} line=${line#* * * }
    case $wanted in *"$NL${line#"$R"}$NL"*) [ "$size" -gt "$FILE_LIMIT" ] || set -- "$@" "$line" ;; esac
  done <"$T/stats"
  while read -r name _; do [ ! -s "$T/$name.file" ] || set -- "$@" "$T/$name.file"; done <"$T/user_files"
  [ $# -gt 0 ] || return 0
  grep -ahoE "[\"'](\\\\?/[^\"']*)?/(nvidia-container-runtime[^\"'/]*|crun|runc)[\"']" "$@" >"$T/handlers.named"
  known=$NL
  while IFS= read -r path; do
    path=${path#?} path=${path%?}
    case $path in *\\/*) path=$(printf '%s\n' "$path" | sed 's|\\/|/|g') ;; esac # as JSON may have it
    case $known in *"$NL$path$NL"*) continue ;; esac
    known=$known$path$NL
    if [ -f "$R$path" ] && [ -x "$R$path" ]; then echo "$path 1"; else echo "$path 0"; fi
  done <"$T/handlers.named"
}

hook_since() { # since when the host has nvidia-container-runtime-hook, in seconds since 1970
  # An upgrade makes the file anew and leaves the package's own directories, which a removal takes away.
  find_tool nvidia-container-runtime-hook || return 0
  {
    stat -c %Z "$TOOL"
    stat -c %W "$R/usr/share/doc/nvidia-container-toolkit" "$R/usr/share/licenses/nvidia-container-toolkit"
  } 2>/dev/null | grep -E '^[1-9][0-9]*$' | sort -n | sed -n '1s/^/hook_since=/p'
}

toolkit() {
  for name in nvidia-container-runtime nvidia-container-runtime-hook nvidia-container-toolkit nvidia-ctk; do
    find_tool "$name" || continue
    echo "$name=${TOOL#"$R"}"
  done
  hook_since
  found=
  for name in runc crun docker-runc; do # what nvidia-container-runtime starts in its turn
    if find_tool "$name"; then found="$found ${TOOL#"$R"}"; fi
  done
  echo "low_level=${found# }"
  # The GPU Operator's: installed here by its toolkit's container, which has its pid file in /run while it is in charge.
  [ -d "$R/run/nvidia/toolkit" ] && [ -d "$R/usr/local/nvidia/toolkit" ] && trusted /usr/local/nvidia/toolkit &&
    echo operator=/usr/local/nvidia/toolkit
  # Found but not executable counts as broken, and `command -v` would not name it.
  for path in usr/bin/nvidia-container-runtime usr/local/bin/nvidia-container-runtime; do
    if [ -e "$R/$path" ] && [ ! -x "$R/$path" ]; then echo "not-executable=/$path"; fi
  done
}

hook_log() { # a job for the toolkit of which a hook ends where /etc/nvidia is read-only, and the container with it
  word "$T/ctk_version.out"
  case $WORD in *' version 1.20.0') job hook_log 10 do_hook_log ;; esac
}

do_hook_log() { # which daemon said so last, of those that start containers; nothing else of their logs
  find_tool journalctl || return 127
  set --
  for name in containerd docker crio kubelet k3s k3s-agent rke2-server rke2-agent k0sworker k0scontroller; do set -- "$@" -u "$name.service"; done
  "$TOOL" -b -n 20000 -o short-unix --no-pager -q "$@" |
    sed -n -e '/^[0-9.]* [^ ]* [a-z0-9-]*\[[0-9]*\]: .*mkdirat etc\/nvidia\/nvidia-application-profiles-rc\.d: read-only file system/h' \
      -e '${x;s/^[0-9.]* [^ ]* \([a-z0-9-]*\)\[.*/\1/p;}'
}
