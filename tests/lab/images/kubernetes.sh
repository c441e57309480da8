#!/bin/bash
# kubernetes.sh: Kubernetes 1.20.2 for lab hosts, built once and kept. No registry has a kubelet or an API server, and Debian's
# source package of its kubectl is the whole of Kubernetes with its dependencies: Debian's Go builds it, without a network.
#
#   $GPUNODE_LAB/base/bookworm-kubernetes     an overlay layer for hosts: kubelet and Debian's kubectl
#   $GPUNODE_LAB/base/bookworm-control-plane  what the lab starts itself (control_plane.py): etcd, the API server, controllers, scheduler
#
# The first one's `.done` holds RECIPE once both are complete, and then nothing happens. The sources, Go and its cache, 1.8 GB,
# are gone afterwards. Needs root and the base of bookworm (build.sh), in an overlay of which it works; it works with the lowest priority.
set -euo pipefail

RECIPE=2   # raise it when a change below must reach what was built before
LAB=${GPUNODE_LAB:-/var/cache/gpunode-lab}
BASE=$LAB/base/bookworm
LAYER=$BASE-kubernetes
PLANE=$BASE-control-plane
WORK=$LAYER.build
TAKEN="vendor staging pkg cmd plugin third_party hack/boilerplate"   # of the source's 12,000 files

is_done() { [ "$(cat "$LAYER/.done" 2>/dev/null)" = "$RECIPE" ]; }

clear_away() {
  ! mountpoint -q "$WORK/root" || umount -R "$WORK/root"
  rm -rf --one-file-system "$WORK"
}

end() {
  local status=$?
  clear_away
  [ "$status" = 0 ] || { tail -n 20 "$LAB/log/kubernetes.log"; echo "lab images: Kubernetes was not built"; } >&2
}

unpack() {   # into the overlay: Go, Debian's etcd and kubectl, and /go/src/k8s.io/kubernetes
  local root=$1 source=$1/go/src/k8s.io/kubernetes wanted=()
  cp /etc/resolv.conf "$root/etc/resolv.conf"
  rm -f "$root"/etc/apt/sources.list.d/*
  sed -n 's/^deb \([^ ]*\) bookworm main$/deb \1 bookworm main\ndeb-src \1 bookworm main/p' "$BASE/etc/apt/sources.list" >"$root/etc/apt/sources.list"
  mkdir -p "$root/download" "$source"
  chroot "$root" apt-get -q -o APT::Sandbox::User=root update
  chroot "$root" sh -c 'cd /download && apt-get -q -o APT::Sandbox::User=root download golang-1.19-go golang-1.19-src etcd-server kubernetes-client &&
    apt-get -q -o APT::Sandbox::User=root source --download-only kubernetes/bookworm'
  for package in "$root"/download/*.deb; do
    dpkg-deb --fsys-tarfile "$package" | tar x -C "$root" ./usr   # not all of it, which would put a directory in the link /lib's place
  done
  local top
  top=$(tar tzf "$root"/download/kubernetes_*.orig.tar.gz | sed -n '1s,/.*,,p' || :)
  for directory in $TAKEN; do wanted+=("$top/$directory"); done
  tar xzf "$root"/download/kubernetes_*.orig.tar.gz -C "$source" --strip-components=1 --exclude='*_test.go' "${wanted[@]}"
  rm -rf "$root/download"
}

# In the overlay, without a network. The source lacks one file, which the API server needs: it is generated as upstream does
# (make gen_openapi). providerless: without the clouds' SDKs, a third of the work.
# shellcheck disable=SC2016  # expands in there
COMPILE='set -eu
export GOROOT=/usr/lib/go-1.19 GOPATH=/go GOCACHE=/go/cache HOME=/go GOPROXY=off GO111MODULE=off GOFLAGS= CGO_ENABLED=0 GOGC=400
PATH=$GOROOT/bin:$PATH
cd /go/src/k8s.io/kubernetes
k=k8s.io/kubernetes
go build -o /go/openapi-gen $k/vendor/k8s.io/kube-openapi/cmd/openapi-gen
dirs=$(grep -rl --include=*.go "+k8s:openapi-gen=" pkg cmd plugin staging/src/k8s.io |
  grep -v -e /testdata/ -e /_examples/ -e code-generator -e sample- |
  xargs -n1 dirname | sort -u | sed "s,^staging/src/,vendor/,; s,^,$k/," | paste -sd,)
/go/openapi-gen --logtostderr -h hack/boilerplate/boilerplate.generatego.txt -O zz_generated.openapi \
  -p $k/pkg/generated/openapi -r /go/violations -i "$dirs"
v=$k/vendor/k8s.io/component-base/version
go build -tags providerless -ldflags "-s -w -X $v.gitVersion=v1.20.2 -X $v.gitMajor=1 -X $v.gitMinor=20 -X $v.gitTreeState=clean" \
  -o /go/ $k/cmd/kube-apiserver $k/cmd/kubelet $k/cmd/kube-controller-manager $k/cmd/kube-scheduler'

build() {
  mkdir -p "$WORK/upper" "$WORK/work" "$WORK/root"
  mount -t overlay gpunode-lab-build -o "lowerdir=$BASE,upperdir=$WORK/upper,workdir=$WORK/work" "$WORK/root"
  unpack "$WORK/root"
  unshare --net --mount --pid --fork --kill-child chroot "$WORK/root" sh -c "mount -t proc proc /proc; $COMPILE"
  rm -rf --one-file-system "$LAYER" "$PLANE"
  install -D -t "$LAYER/usr/bin" "$WORK/root/go/kubelet" "$WORK/root/usr/bin/kubectl"
  install -D -t "$PLANE/usr/bin" "$WORK/root/usr/bin/etcd" "$WORK"/root/go/kube-{apiserver,controller-manager,scheduler}
}

[ "$(id -u)" = 0 ] || { echo "lab images: kubernetes.sh must run as root" >&2; exit 1; }
mkdir -p "$LAB/base" "$LAB/log"
exec 9>"$LAB/base/.kubernetes.lock"
flock 9
is_done && exit 0
[ -e "$BASE/.done" ] || { echo "lab images: no image of bookworm; run tests/lab/images/build.sh bookworm" >&2; exit 1; }
renice -n 19 -p $$ >/dev/null
trap end EXIT
clear_away
build >"$LAB/log/kubernetes.log" 2>&1
echo "$RECIPE" >"$LAYER/.done"
echo "lab images: bookworm-kubernetes $SECONDS s, $(du -sch "$LAYER" "$PLANE" | tail -n 1 | cut -f1)"
