# shellcheck shell=sh
# Kubelets and Kubernetes distributions.

kubernetes() {
  for path in etc/rancher/k3s etc/rancher/rke2 var/snap/microk8s/current etc/k0s etc/kubernetes/kubelet.conf etc/kubernetes/manifests; do
    [ -e "$R/$path" ] && trusted "/$path" && echo "mark=/$path"
  done
  config=/var/lib/kubelet/config.yaml
  while read -r pid comm; do
    [ "$comm" = kubelet ] || continue
    path=$T/process:$pid
    echo running=1
    option "$path" config ''
    config=${VALUE:-$config}
    option "$path" cgroup-driver ''
    [ -n "$VALUE" ] && echo "flag=$VALUE"
  done <"$T/processes"
  if find_tool kubelet; then echo "binary=$TOOL"; fi
  echo "config=$config"
  if [ -e "$R$config" ]; then
    if located "$config" && [ -f "$R$config" ] && [ -r "$R$config" ]; then sed -n 's/^cgroupDriver:[[:space:]]*/cgroupDriver=/p' "$R$config"; else echo "unreadable=$config"; fi
  fi
  return 0
}
