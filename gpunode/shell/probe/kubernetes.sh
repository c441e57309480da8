# shellcheck shell=sh
# Kubelets and Kubernetes distributions: what the kubelet is told, what device plugins have told it, and the node's object.

CHECKPOINT_LIMIT=4194304 # bytes; a few hundred pods with their answers have half a megabyte
ENTRIES_LIMIT=512 # pods; a kubelet takes 110 unless it is told otherwise
GHOSTS_LIMIT=32
PLUGINS=/var/lib/kubelet/device-plugins # whatever --root-dir says (kubernetes/kubernetes#68567, k0sproject/k0s#7585)
SOCKETS_LIMIT=32

kubernetes() {
  config=/var/lib/kubelet/config.yaml folder='' kubeconfig='' state='' node='' kubelet='' told='' inside='' rancher=''
  for path in etc/rancher/k3s etc/rancher/rke2 var/snap/microk8s/current etc/k0s etc/kubernetes/kubelet.conf etc/kubernetes/manifests; do
    if [ -e "$R/$path" ] && trusted "/$path"; then kubelet=1; echo "mark=/$path"; else continue; fi
    case $path in etc/rancher/*) rancher=${path##*/} ;; esac
  done
  for path in etc/eks:eks etc/kubernetes/azure.json:aks home/kubernetes:gke; do
    if [ -e "$R/${path%:*}" ] && trusted "/${path%:*}"; then echo "cloud=${path##*:}"; break; fi
  done
  while read -r pid comm <&3; do
    case $comm in
      kubelet) told=1; echo running=1; kubelet_flags "$T/process:$pid" ;;
      k3s-* | rke2) kubelet=1 inside=$comm ;;
      k0s | kubelite) kubelet=1 ;;
    esac
  done 3<"$T/processes"
  if find_tool kubelet; then
    kubelet=1
    echo "binary=$TOOL"
    job kubelet:version 5 "$TOOL" --version
    echo kubelet:version >>"$T/slow"
    if [ -z "$told" ]; then # it does not run: what its unit would give it
      would_be_told >"$T/would-be-told"
      kubelet_flags "$T/would-be-told"
    fi
  elif [ -z "$told" ]; then # one that is down, too
    inside=${inside:-$rancher}
  fi
  [ -z "$inside" ] || of_rancher
  printf 'config=%s\n' "$config"
  [ -z "$folder" ] || printf 'config-dir=%s\n' "$folder"
  kubelet_files
  [ -z "$kubelet$told" ] || what_people_write
  if [ -n "$kubelet$told" ] && [ "$SETTING" != image ]; then
    device_plugins
    ask_node
  fi
  return 0
}

of_rancher() { # k3s and rke2 tell their kubelet no file of kubeadm's, and from 1.32 on a directory, which k3s' process does not show
  [ "$config" != /var/lib/kubelet/config.yaml ] || config=''
  [ -z "$folder" ] || return 0
  case $inside in rke2) path=/var/lib/rancher/rke2 ;; *) path=/var/lib/rancher/k3s ;; esac
  if [ -d "$R$path/agent/etc/kubelet.conf.d" ]; then folder=$path/agent/etc/kubelet.conf.d; fi
}

would_be_told() { # the flags of a kubelet that does not run, as arg= lines: of its unit, and of what kubeadm has the unit read
  while IFS= read -r line; do printf '%s\n' "$line"; done <"$T/unit-kubelet"
  set --
  for path in /var/lib/kubelet/kubeadm-flags.env /etc/default/kubelet /etc/sysconfig/kubelet "$R"/etc/systemd/system/kubelet.service.d/*.conf; do
    path=${path#"$R"}
    [ -f "$R$path" ] && [ -r "$R$path" ] && trusted "$path" && set -- "$@" "$R$path"
  done
  [ $# = 0 ] || cat "$@" | head -c "$FILE_LIMIT" | grep -E '^(Environment="?)?KUBELET_' | tr " \"'" '\n\n\n' |
    sed -n 's/^\(Environment=\)\{0,1\}\(KUBELET_[A-Z_]*=\)\{0,1\}//; s/^./arg=&/p'
}

kubelet_flags() { # FILE of arg= lines: what is asked of them, and config, folder, kubeconfig, state, node
  # As the kubelet's own parser has it: the last of a flag counts, and what is a map collects all.
  awk 'function keep(name, text) {
      if (!(name in value)) order[++most] = name
      else if (name ~ /^(feature-gates|node-labels)$/) text = value[name] "," text
      value[name] = text }
    /^arg=/ { word = substr($0, 5)
      if (flag != "" && word !~ /^--/) { keep(flag, word); flag = ""; next }
      flag = ""
      if (word !~ /^--[a-z]/) next
      sub(/^--/, "", word)
      at = index(word, "=")
      if (at) keep(substr(word, 1, at - 1), substr(word, at + 1)); else flag = word }
    END { for (n = 1; n <= most; n++) print order[n] "=" value[order[n]] }' "$1" >"$T/flags"
  while IFS= read -r line <&4; do
    value=${line#*=}
    case $line in
      cgroup-driver=*) printf 'flag=%s\n' "$value" ;;
      fail-cgroupv1=*) printf 'failCgroupV1=%s\n' "$value" ;;
      fail-swap-on=*) printf 'failSwapOn=%s\n' "$value" ;;
      feature-gates=* | node-labels=* | cpu-manager-policy=* | topology-manager-policy=* | container-runtime=* | container-runtime-endpoint=*) printf 'arg=%s\n' "$line" ;;
      config=/*) config=$value ;;
      config-dir=/*) folder=$value ;;
      kubeconfig=/*) kubeconfig=$value ;;
      root-dir=/*) state=$value ;;
      hostname-override=*) node=$value ;;
    esac
  done 4<"$T/flags"
}

kubelet_files() { # its settings, KEY=VALUE and gate=NAME=VALUE: of config and of the drop-ins of folder, the last of which counts and comes first
  set --
  for path in ${config:+"$config"} ${folder:+"$R$folder"/*.conf}; do
    path=${path#"$R"}
    [ -e "$R$path" ] || continue
    if trusted "$path" && [ -f "$R$path" ] && [ -r "$R$path" ]; then set -- "$path" "$@"; else printf 'unreadable=%s\n' "$path"; fi
  done
  [ $# = 0 ] && return 0
  echo settings=read
  for path in "$@"; do printf '\n@%s\n' "$path"; head -c "$FILE_LIMIT" "$R$path"; done | awk '
    /^@/ { file = substr($0, 2); base = gates = 0; next }
    { line = $0; sub(/(^|[ \t])#.*/, "", line); gsub(/["\047\r]/, "", line); sub(/[, \t]+$/, "", line)
      if (line ~ /^[ \t]*[{}]?$/ || line ~ /^(---|\.\.\.)/) next
      if (!base && line ~ /^[ \t]*\{/) { print "unreadable=" file; base = 1000; next } # JSON in one line
      match(line, /[^ \t]/)
      if (!base) base = RSTART
      key = value = line; sub(/^[ \t]*/, "", key); sub(/:.*/, "", key); sub(/^[^:]*:[ \t]*/, "", value)
      if (RSTART > base) { if (gates) print "gate=" key "=" value; next }
      gates = key == "featureGates"
      if (gates && value != "") print "gates=" value
      if (key ~ /^(cgroupDriver|failCgroupV1|failSwapOn|cpuManagerPolicy|topologyManagerPolicy|containerRuntimeEndpoint)$/) print key "=" value }'
}

what_people_write() { # -> $T/kubelet_texts: the files that decide how the kubelet starts, whole, for who is to edit one of them
  for path in "$R$config" ${folder:+"$R$folder"/*.conf} "$R"/var/lib/kubelet/kubeadm-flags.env "$R"/etc/default/kubelet "$R"/etc/sysconfig/kubelet \
    "$R"/etc/systemd/system/kubelet.service "$R"/etc/systemd/system/kubelet.service.d/*.conf \
    "$R"/usr/lib/systemd/system/kubelet.service "$R"/usr/lib/systemd/system/kubelet.service.d/*.conf \
    "$R"/lib/systemd/system/kubelet.service "$R"/lib/systemd/system/kubelet.service.d/*.conf \
    "$R"/etc/systemd/system/*.service.d/50-gpunode.conf; do
    case $path in "$R"/lib/*) [ -h "$R/lib" ] && continue ;; esac
    [ -f "$path" ] && printf '%s\n' "${path#"$R"}"
  done >"$T/kubelet_texts"
}

device_plugins() { # what the kubelet and NVIDIA's plugins keep: sockets, what is registered, and NVIDIA's pods on this node
  for path in "$state" /var/lib/kubelet /var/lib/k0s/kubelet /var/snap/microk8s/common/var/lib/kubelet; do
    [ -n "$path" ] && [ -d "$R$path" ] && break
  done
  state=$path
  [ -d "$R$state" ] && [ -x "$R$state" ] && trusted "$state" || return 0
  plugins=$PLUGINS
  if [ -S "$R$state/device-plugins/kubelet.sock" ]; then plugins=$state/device-plugins; fi
  if [ -d "$R$plugins" ] && { [ ! -r "$R$plugins" ] || ! trusted "$plugins"; }; then return 0; fi
  printf 'plugins=%s\nroot-dir=%s\n' "$plugins" "$state"
  own=$R$plugins/kubelet.sock
  [ ! -S "$own" ] || echo kubelet.sock=1
  [ ! -S "$R$state/pod-resources/kubelet.sock" ] || echo pod-resources=1
  sockets
  checkpoint
  running_plugins
  pods_of_nvidia
  for path in "$R"/run/nvidia/validations/*-ready; do
    if [ -e "$path" ]; then echo "validation=${path##*/}"; fi
  done
}

sockets() { # of plugins: "1 NAME" of one that was made after the kubelet's own, "0 NAME" of one from before
  count=0
  for path in "$R$plugins"/*; do
    [ -S "$path" ] && [ "$path" != "$own" ] && [ "$count" -lt "$SOCKETS_LIMIT" ] || continue
    count=$((count + 1))
    # shellcheck disable=SC3013 # dash, bash and busybox have it
    if [ -S "$own" ] && [ "$path" -ot "$own" ]; then echo "socket=0 ${path##*/}"; else echo "socket=1 ${path##*/}"; fi
  done
  for path in "$R$state"/plugins_registry/*nvidia*.sock; do
    if [ -S "$path" ]; then echo "registry=${path##*/}"; fi
  done
}

checkpoint() { # RegisteredDevices; of the entries of pods their UIDs alone: they hold what containers were given
  path=$plugins/kubelet_internal_checkpoint
  if [ ! -e "$R$path" ]; then printf 'registered={}\nentries=whole\nallocated=0\n'; return 0; fi
  trusted "$path" && [ -f "$R$path" ] && [ -r "$R$path" ] || return 0
  : >"$T/allocated"
  { head -c "$CHECKPOINT_LIMIT" "$R$path"; echo; } | awk -v pods="$T/allocated" -v most="$ENTRIES_LIMIT" '
    BEGIN { RS = "," }
    state == 2 { next }
    { gsub(/[\r\n]/, "") }
    !state && match($0, /"PodUID": *"[0-9A-Za-z-]+"/) {
      uid = substr($0, RSTART, RLENGTH); sub(/"$/, "", uid); sub(/.*"/, "", uid)
      if (length(uid) <= 64 && !(uid in seen) && count < most) { seen[uid]; count++; print uid >pods }
    }
    !state && match($0, /"RegisteredDevices": */) {
      state = 1; $0 = substr($0, RSTART + RLENGTH); printf "registered="
      if (/^null/) { state = 2; print "{}"; next }
      between = ""
    }
    state == 1 {
      if (match($0, /}/)) { state = 2; print between substr($0, 1, RSTART); next }
      printf "%s%s", between, $0; between = ","
    }
    END { if (state == 1) print ""; if (state == 2) print "entries=whole" }'
  entries
}

entries() { # pods to which devices were given: how many, and those of which the kubelet has no directory any more
  if [ ! -s "$T/allocated" ]; then echo allocated=0; return 0; fi
  [ -d "$R$state/pods" ] && [ -x "$R$state/pods" ] && trusted "$state/pods" || return 0
  count=0 gone=0 last=''
  while read -r uid <&4; do
    count=$((count + 1))
    if [ -d "$R$state/pods/$uid" ]; then
      # The newest pod of all, for which the checkpoint was written last; in that moment the kubelet takes out pods that
      # have ended (UpdateAllocatedDevices), and otherwise it keeps them. It makes `plugins` with the pod's directory.
      # shellcheck disable=SC3013 # dash, bash and busybox have it
      if [ -d "$R$state/pods/$uid/plugins" ] && ! [ "$R$state/pods/$uid/plugins" -ot "$R$path" ] &&
        ! [ "$R$state/pods" -nt "$R$state/pods/$uid/plugins" ]; then last=1; fi
    elif [ "$gone" -lt "$GHOSTS_LIMIT" ]; then gone=$((gone + 1)); echo "ghost=$uid"; fi
  done 4<"$T/allocated"
  echo "allocated=$count"
  [ -z "$last" ] || echo allocated-last=1
}

running_plugins() { # root's processes of device plugins, and of one what its container was made with
  for path in "$R"/proc/[0-9]*; do
    word "$path/comm"
    case $WORD in nvidia-device-p | nvidia-gpu-devic) ;; *) continue ;; esac
    grep -q '^Uid:[[:blank:]]0[[:blank:]]0[[:blank:]]0[[:blank:]]0$' "$path/status" 2>/dev/null || continue # anybody names a process
    echo "plugin=${path##*/}"
    while read -r line; do
      id=${line##*/} id=${id%.scope} id=${id##*-}
      case ${#id}:$id in 64:*[!0-9a-f]*) ;; 64:*) made_with "$id"; break ;; esac
    done <"$path/cgroup"
  done
}

made_with() { # CONTAINER: image and settings of a plugin, from what its engine keeps of it; no other word of the environment
  for path in /run/containerd /run/k3s/containerd /run/k0s/containerd /var/snap/microk8s/common/run/containerd; do
    path=$path/io.containerd.runtime.v2.task/k8s.io/$1/config.json
    [ -f "$R$path" ] && break
  done
  [ -f "$R$path" ] || path=/run/containers/storage/overlay-containers/$1/userdata/config.json
  [ -f "$R$path" ] && [ -r "$R$path" ] && trusted "$path" || return 0
  echo made=1
  head -c 1048576 "$R$path" |
    grep -oE '"io\.kubernetes\.(cri\.image-name|cri-o\.ImageName)" *: *"[^"\\]*"|"(PASS_DEVICE_SPECS|DEVICE_LIST_STRATEGY|MIG_STRATEGY|CONFIG_FILE)=[^"\\]*"|"--(pass-device-specs|device-list-strategy|mig-strategy|config-file)(=[^"\\]*)?"|"--(device-list-strategy|mig-strategy|config-file)" *, *"[^"\\]*"' |
    sed -e 's/^"io[^"]*" *: *"\(.*\)"$/image=\1/; s/^"\([A-Z]\)/env=\1/; s/^"--\([a-z-]*\)" *, *"/option=\1=/; s/^"--/option=/; s/"$//'
}

# ---- the node's object

NODE_FIELDS='{{range $k, $v := .status.capacity}}capacity={{$k}} {{$v}}
{{end}}{{range $k, $v := .status.allocatable}}allocatable={{$k}} {{$v}}
{{end}}{{range .status.conditions}}condition={{.type}} {{.status}} {{.reason}}
{{end}}{{range .spec.taints}}taint={{.effect}} {{.key}}
{{end}}{{range $k, $v := .metadata.labels}}label={{$k}} {{$v}}
{{end}}{{if .spec.unschedulable}}unschedulable=1
{{end}}images=read
{{range .status.images}}{{range .names}}image={{.}}
{{end}}{{end}}'
IMAGES_LIMIT=64 # of NVIDIA's; a node's object has fifty with a few names each

ask_node() { # the kubelet may read its own node: with a kubectl of root's, and nothing that it would have to run for a token
  for path in "$kubeconfig" /etc/kubernetes/kubelet.conf /var/lib/rancher/k3s/agent/kubelet.kubeconfig \
    /var/lib/rancher/rke2/agent/kubelet.kubeconfig /var/lib/k0s/kubelet.conf /var/snap/microk8s/current/credentials/kubelet.config; do
    [ -n "$path" ] && [ -f "$R$path" ] && break
  done
  if [ -f "$R$path" ]; then printf 'kubeconfig=%s\n' "$path"; elif [ -z "$told" ]; then return 0; fi # not yet a node
  echo node >>"$T/slow"
  if [ ! -r "$R$path" ] || [ ! -f "$R$path" ]; then refuse node 'no kubeconfig of the kubelet can be read'; return 0; fi
  if ! trusted "$path"; then refuse node "$WHY_NOT"; return 0; fi
  if asks_a_program "$R$path"; then
    refuse node "$path has a program that gets its token, which is not run"
    return 0
  fi
  if ! find_kubectl; then refuse node "$WHY_NOT to ask the API server with"; return 0; fi
  case $node:$path in
    :/var/lib/rancher/*) node_of_rancher "${path%/*}/client-kubelet.crt" || return 0 ;;
    :*) word "$R/proc/sys/kernel/hostname"; node=$WORD ;;
  esac
  case $node in *[A-Z]*) node=$(printf '%s' "$node" | tr '[:upper:]' '[:lower:]') ;; esac # as the kubelet does
  printf 'node-name=%s\n' "$node"
  # shellcheck disable=SC2086  # one or two words
  job node 6 do_node "$path" "$node" $KUBECTL
}

node_of_rancher() { # CERTIFICATE of a kubelet inside k3s -> node; k3s erases its arguments, and its environment and files may give it a name too
  if ! trusted "$1"; then refuse node "$WHY_NOT, and has the node's name"; return 1; fi
  if [ ! -f "$R$1" ] || [ ! -r "$R$1" ]; then refuse node "$1 cannot be read, and has the node's name"; return 1; fi
  node=$(node_of_certificate "$R$1")
  case $node in '' | *[!a-z0-9.-]*) refuse node "$1 is no certificate of a node"; return 1 ;; esac
}

node_of_certificate() { # FILE -> the NAME of its subject's system:node:NAME: in DER a text has its length in the byte before it
  head -c 65536 "$1" | awk '/-----END/ { exit } !/-----/' | base64 -d 2>/dev/null | od -An -v -tx1 | tr -d ' \n' | awk '
    function byte(at) { return 16 * digit(substr($0, at, 1)) + digit(substr($0, at + 1, 1)) }
    function digit(one) { return index("0123456789abcdef", one) - 1 }
    { at = index($0, "73797374656d3a6e6f64653a") # system:node:
      if (at < 3) exit
      end = at + 2 * byte(at - 2)
      for (at += 24; at < end; at += 2) printf "%c", byte(at) }'
}

do_node() { # KUBECONFIG NAME KUBECTL...: its caches and settings go to, and come from, the work folder
  file=$R$1 name=$2; shift 2
  ulimit -f 2048
  HOME=$T KUBECONFIG='' "$@" --kubeconfig "$file" --cache-dir "$T/kubectl" --request-timeout 4s \
    get node -o "go-template=$NODE_FIELDS" -- "$name" >"$T/node.object" || return $?
  count=0
  while IFS= read -r line; do
    case $line in
      image=*nvidia* | image=*gpu-operator* | image=*k8s-device-plugin* | image=*/container-toolkit*)
        count=$((count + 1)); [ "$count" -le "$IMAGES_LIMIT" ] || continue ;;
      image=*) continue ;;
    esac
    printf '%s\n' "$line"
  done <"$T/node.object"
}
