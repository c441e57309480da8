# shellcheck shell=sh disable=SC2034,SC2154
# A test pod that is bound to this node: made, waited for, read, and deleted in every ending. By a kubectl of root's and a
# kubeconfig that may create pods: the kubelet's own identity may not (NodeRestriction). Sent after daemon/query, trust,
# probe/wire and active/room.

POD_FIELDS='phase={{.status.phase}}{{"\n"}}{{with .status.reason}}reason={{.}}{{"\n"}}{{end}}{{with .status.message}}message={{.}}{{"\n"}}{{end}}{{range .status.containerStatuses}}{{with .state.waiting}}waiting={{.reason}}{{with .message}}: {{.}}{{end}}{{"\n"}}{{end}}{{with .state.terminated}}ended={{.exitCode}} {{.reason}}{{"\n"}}{{end}}{{end}}'

LEFT_FIELDS='{{range .items}}{{.metadata.creationTimestamp}} {{.status.phase}} {{.metadata.name}}{{"\n"}}{{end}}'

gpunode_pod() { # NAME LIMIT_S KUBECONFIG MANIFEST NODE; KUBECONFIG -: what distributions leave to root
  begin || return 0
  pod_name=$1 pod_limit=$2 file=''
  if kubeconfig "$3"; then
    printf '%s\n' "$4" >"$T/pod.json"
    file=$WITH
    earlier "$5"
    kubectl create 30 create -f "$T/pod.json" # it may be there even where the answer did not come
    said create create
    [ "$RC" != 0 ] || watch
    sweep
  else
    unsaid create "$WHY_NOT"
  fi
  file=''
  printf '@end\n'
}

kubeconfig() { # KUBECONFIG|- -> WITH, and KUBECTL, the words that run it; false: WHY_NOT
  WITH=$1 KUBECTL=''
  if [ "$1" = - ]; then
    for path in /etc/kubernetes/admin.conf /etc/rancher/k3s/k3s.yaml /etc/rancher/rke2/rke2.yaml \
      /var/lib/k0s/pki/admin.conf /var/snap/microk8s/current/credentials/client.config; do
      [ -f "$path" ] && WITH=$path && break
    done
    [ "$WITH" != - ] || { WHY_NOT='none'; return 1; }
  fi
  [ -f "$WITH" ] || { WHY_NOT="there is no file $WITH"; return 1; }
  trusted "$WITH" || return 1
  if asks_a_program "$WITH"; then
    WHY_NOT="$WITH has a program that gets its token, which is not run"
    return 1
  fi
  find_kubectl
}

kubectl() { # JOB LIMIT_S WORD...
  kubectl_job=$1 kubectl_limit=$2
  shift 2
  # shellcheck disable=SC2086  # one or two words
  within "$kubectl_job" "$kubectl_limit" env HOME="$T" KUBECONFIG= $KUBECTL --kubeconfig "$file" --cache-dir "$T/kubectl" \
    --namespace default "$@"
}

earlier() { # NODE: pods of tests on it that have ended and are still there go: the host of who made them went down
  # A younger one may still be read by who made it: LEFT_AFTER in cluster/earlier_pods.py.
  left_before=$(date -u -d "@$(($(date +%s) - 600))" +%Y%m%d%H%M%S 2>/dev/null)
  case $left_before in *[!0-9]*) return 0 ;; ??????????????) ;; *) return 0 ;; esac
  kubectl earlier 15 get pods --selector app.kubernetes.io/managed-by=gpunode --field-selector "spec.nodeName=$1" \
    -o "go-template=$LEFT_FIELDS"
  [ "$RC" = 0 ] || return 0 # who may not list pods tests all the same
  set --
  while IFS='-T:Z ' read -r left_y left_m left_d left_h left_min left_s left_phase left_name; do
    left_made=$left_y$left_m$left_d$left_h$left_min$left_s
    case $left_made in *[!0-9]*) continue ;; ??????????????) ;; *) continue ;; esac
    [ "$left_made" -lt "$left_before" ] || continue
    case $left_phase:$left_name in
      *[!A-Za-z0-9:-]*) ;;
      Succeeded:gpunode-verify-* | Failed:gpunode-verify-*) [ $# -ge 20 ] || set -- "$@" "$left_name" ;;
    esac
  done <"$T/earlier.out"
  [ $# -gt 0 ] || return 0
  kubectl swept 30 delete pod "$@" --ignore-not-found --timeout 20s
  said swept swept
}

watch() { # until the pod has ended, or its time is over; what it came to, and what it said
  clock
  over_at=$((NOW + pod_limit))
  while :; do
    kubectl state 15 get pod "$pod_name" -o "go-template=$POD_FIELDS"
    case $RC:$(sed -n '/^phase=/{s///p;q;}' "$T/state.out") in 0:Succeeded | 0:Failed) break ;; esac
    clock
    [ "$NOW" -lt "$over_at" ] || break
    [ -d "/proc/$PPID" ] || exit 1 # nobody waits for this any more; without a terminal no signal says so
    sleep 1
  done
  said state state
  kubectl logs 15 logs "$pod_name" --tail 20 --limit-bytes 4096
  said logs logs
}

sweep() { # by every ending; SWEPT: the answer
  [ -n "$file" ] || return 0
  kubectl delete 60 delete pod "$pod_name" --ignore-not-found --grace-period 1 --timeout 40s
  said delete delete
  file=''
}
