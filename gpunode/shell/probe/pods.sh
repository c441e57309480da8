# shellcheck shell=sh disable=SC2154
# NVIDIA's pods on this node, by what the kubelet keeps of them, and what the device plugin's ConfigMaps say about sharing.
# `state`, the kubelet's directory, comes from kubernetes.sh.

PODS_LIMIT=32 # of NVIDIA's; a node has ten
CONFIGS_LIMIT=8 # keys of a ConfigMap; one for each kind of node
CONFIG_LIMIT=65536 # bytes of one

pods_of_nvidia() { # NAMESPACE_POD CONTAINER RESTARTS: the kubelet keeps their logs by these names, and its last one has a number
  [ -d "$R/var/log/pods" ] && [ -r "$R/var/log/pods" ] && [ -r "$R$state/pods" ] && trusted /var/log/pods || return 0
  echo pods=read
  count=0
  for path in "$R"/var/log/pods/*nvidia*; do
    pod=${path##*/} begun='' plugin=''
    [ -d "$R$state/pods/${pod##*_}" ] && [ "$count" -lt "$PODS_LIMIT" ] || continue # its pod is gone
    for one in "$path"/*; do
      [ -d "$one" ] || continue
      most=-1
      for log in "$one"/*.log; do
        number=${log##*/} number=${number%.log}
        case $number in '' | *[!0-9]* | ???????*) ;; *) [ "$number" -gt "$most" ] && most=$number ;; esac
      done
      count=$((count + 1))
      printf 'pod=%s %s %s\n' "${pod%_*}" "${one##*/}" "$most"
      case ${one##*/} in nvidia-device-plugin*) last_words "${one#"$R"}/$most.log"; plugin=${pod##*_} ;; esac
      begun=1
    done
    case $begun:$pod in :*device-plugin*) count=$((count + 1)); plugin_waits "$path" "${pod%_*}" ;; esac
    if [ -n "$plugin" ]; then plugin_configs "$plugin"; fi
  done
}

plugin_waits() { # FOLDER POD of a device plugin that has a sandbox, and no container yet: whether for longer than ten minutes
  case $(find "$1" -maxdepth 0 -mmin +10 2>/dev/null) in '') echo "waits=0 $2" ;; *) echo "waits=1 $2" ;; esac
}

last_words() { # LOG of a device plugin: the last thing that it says about GPUs it does not see, of those that are known
  trusted "$1" && [ -f "$R$1" ] && [ -r "$R$1" ] || return 0
  tail -c "$FILE_LIMIT" "$R$1" | grep -oE 'Incompatible (strategy|platform) detected|No devices found|could not load NVML( library)?|[Ff]ailed to initialize NVML|invalid device discovery strategy' |
    sed -n '$s/^/said=/p'
}

plugin_configs() { # UID of a device plugin's pod: of the files in its ConfigMaps what they say about sharing, and migStrategy
  # The directory of such a volume may be written by everybody (0777, as the kubelet makes emptyDirs, which they are
  # inside). Nobody but root gets there: the pod's own directory is closed to others. So that one is judged, and the files.
  trusted "$state/pods" && [ ! -h "$R$state/pods/$1" ] || return 0
  set -- "$R$state/pods/$1"
  for one in "$1"/volumes/kubernetes.io~configmap/*/*; do
    [ -f "$one" ] && [ -r "$one" ] && [ $# -le "$CONFIGS_LIMIT" ] && set -- "$@" "$one"
  done
  stat -Lc '%f %u %g %s %n' "$@" >"$T/configs" 2>/dev/null
  set --
  while read -r mode user group size one <&4; do
    judge "$mode" "$user" "$group" "${one#"$R"}" || { [ $# -gt 0 ] && continue; return 0; }
    if [ $# = 0 ]; then # the pod's directory
      [ $((MODE & 1)) = 0 ] || return 0
      [ $((MODE & 8)) = 0 ] || [ "$group" = 0 ] || [ "$group" = "$MY_GROUP" ] || return 0
      echo plugin-configs=read
      set -- -
    elif [ "$size" -le "$CONFIG_LIMIT" ]; then set -- "$@" "$one"; fi
  done 4<"$T/configs"
  [ $# -gt 1 ] || return 0
  shift
  about_sharing "$@"
}

about_sharing() { # FILES -> config-of=VOLUME/KEY and lines of its YAML, sharing=LINE; other keys of it, and files that are no such thing, are left
  awk '
    FNR == 1 { on = flags = base = begun = 0; n = split(FILENAME, part, "/"); print "config-of=" part[n - 1] "/" part[n] }
    { sub(/\r$/, "") }
    /^[ \t]*(#.*)?$/ { next }
    /^(---|\.\.\.)/ { on = flags = 0; next }
    !begun++ && /^[{[]/ { print "config-odd=1"; next } # JSON
    length($0) > 1000 { if (on || flags) print "config-odd=1"; on = flags = 0; next }
    /^[^ \t-]/ {
      key = $0; sub(/[ \t]*:.*/, "", key); gsub(/["\047]/, "", key)
      on = key == "version" || key == "sharing"; flags = key == "flags"; base = 0
      if (flags) { if ($0 ~ /:[ \t]*(#.*)?$/) print "sharing=flags:"; else { print "config-odd=1"; flags = 0 } }
    }
    on { print "sharing=" $0 }
    flags && match($0, /^[ \t]+/) {
      if (!base) base = RLENGTH
      if (RLENGTH == base && /^[ \t]+["\047]?migStrategy["\047]?[ \t]*:/) print "sharing=" $0
    }' "$@"
}
