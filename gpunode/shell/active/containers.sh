# shellcheck shell=sh disable=SC2034,SC2154
# A container with the GPU, by the engines' own command lines. Which engines there are and what they are asked is told by
# `trials`, a function of lines such as
#   trial 0 image docker /run/docker.sock DOCKER_HOST=unix:///run/docker.sock --gpus all
# that each phase runs once more.

LABEL=io.gpunode.test
IMAGE=localhost/gpunode-test:latest
SPACE=gpunode-test # ctr's namespace
IN_THERE=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
WAIT='read -r word </wait'
# In the container: builtins only, since it has nothing else.
# shellcheck disable=SC2016
LOOK='for node in /dev/nvidia[0-9]* /dev/nvidiactl; do
  [ -c "$node" ] || continue
  if said=$( (exec 3<>"$node") 2>&1); then echo "open $node"; else echo "closed $node ${said##*: }"; fi
done
if command -v nvidia-smi >/dev/null 2>&1; then nvidia-smi -L 2>&1; echo "smi $?"; else echo "smi none"; fi'

trial() { # NUMBER KIND PROGRAM SOCKET ADDRESS OPTION...
  NUMBER=$1 KIND=$2 program=$3 socket=$4 address=$5; shift 5
  NAME=gpunode-test-$NUMBER
  [ -s "$T/out.$NUMBER" ] && return 0 # it is out of the game
  if ! find_tool "$program"; then out "there is no program $program that root alone decides about"; return 0; fi
  if [ "$socket" != - ] && ! own_socket "$socket"; then out "$WHY_NOT"; return 0; fi
  [ "$address" = - ] || export "${address?}"
  "${PHASE}_$KIND" "$@"
  return 0
}

out() { # WHY: it is not tried any further; the first phase says so
  echo "$1" >"$T/out.$NUMBER"
  if [ "$PHASE" = start ]; then unsaid "start:$NUMBER" "$1"; fi
}

started() {
  said start "start:$NUMBER"
  [ "$RC" = 0 ] || echo 'it did not start' >"$T/out.$NUMBER"
}

# ---- engines that load an image, with docker's verbs

start_image() {
  case $LOADED in
    *" $TOOL:$socket "*) ;;
    *)
      within load 60 "$TOOL" load -i "$ROOM/image.tar"
      if [ "$RC" != 0 ]; then
        why=$(sed '$!d' "$T/load.out")
        out "it does not load an image: ${why:-exit code $RC}"
        return
      fi
      LOADED="$LOADED $TOOL:$socket " ;;
  esac
  # It is there by its name, so nothing is pulled; --pull=never is newer than docker 19.03.
  within start 90 "$TOOL" run -d --name "$NAME" --network none --log-driver none "$@" "$IMAGE"
  started
}

look_image() { look exec "$NAME" /bin/sh -c "$LOOK"; }

# A look changes nothing, and a client may lose the words of a process that ends at once: a look without its last word is
# repeated, once.
look() { # VERB...
  within look 45 "$TOOL" "$@"
  [ "$RC" = 124 ] || grep -q '^smi ' "$T/look.out" || within look 45 "$TOOL" "$@"
  said look "$SEEN:$NUMBER"
}

sweep_image() {
  case $SWEPT in *" $TOOL:$socket "*) return ;; esac
  SWEPT="$SWEPT $TOOL:$socket "
  gone "$TOOL ps -aq" ps -aq --filter "label=$LABEL" && { ids rm -f; }
  gone "$TOOL images -q" images -q --filter "label=$LABEL" && { ids rmi -f; }
}

gone() { # WHAT VERB...: true where something of ours is there -> $T/list.out
  shift
  within list 20 "$TOOL" "$@"
  if [ "$RC" != 0 ]; then left "$TOOL $1 does not answer"; return 1; fi
  [ -s "$T/list.out" ]
}

ids() { # VERB...: with the ids that `gone` has found
  # shellcheck disable=SC2046
  set -- "$@" $(grep -E '^[0-9a-f]{12,64}$' "$T/list.out" | sort -u)
  within end 45 "$TOOL" "$@"
  [ "$RC" = 0 ] || left "$TOOL $*: $(sed '$!d' "$T/end.out")"
}

left() { printf '%s\n' "$(printf '%s' "$1" | head -c 300)" >>"$T/left"; } # WHAT could not be removed

# ---- containerd's own client, with a directory as the container's root and a namespace of our own

start_rootfs() {
  cp -a "$ROOM/root" "$ROOM/$NAME" || { out "$ROOM cannot be written"; return; }
  within start 90 "$TOOL" --namespace "$SPACE" run -d --null-io --rootfs --env "PATH=$IN_THERE" --env NVIDIA_VISIBLE_DEVICES=all \
    --env NVIDIA_DRIVER_CAPABILITIES=compute,utility "$@" "$ROOM/$NAME" "$NAME" /bin/sh -c "$WAIT"
  started
}

look_rootfs() {
  look --namespace "$SPACE" tasks exec --exec-id "$SEEN" "$NAME" /bin/sh -c "$LOOK"
}

sweep_rootfs() {
  case $SWEPT in *" $TOOL:$socket "*) return ;; esac
  SWEPT="$SWEPT $TOOL:$socket "
  within list 20 "$TOOL" --namespace "$SPACE" containers ls -q
  if [ "$RC" != 0 ]; then left "$TOOL does not answer"; return; fi
  for id in $(grep -E '^gpunode-test-[0-9]+$' "$T/list.out"); do
    within end 45 "$TOOL" --namespace "$SPACE" tasks delete -f "$id"
    within end 20 "$TOOL" --namespace "$SPACE" containers delete "$id"
    [ "$RC" = 0 ] || left "$TOOL --namespace $SPACE containers delete $id: $(sed '$!d' "$T/end.out")"
  done
  within end 20 "$TOOL" namespaces remove "$SPACE"
}

# ---- all of them

sweep() {
  PHASE=sweep SWEPT=' '
  rm -f "$T"/out.*
  trials
}

containers() { # RELOAD, 1 or 0
  LOADED=' '
  if ! { make_root && make_image; }; then unsaid root "$WHY_NOT"; return; fi
  PHASE=start; trials
  PHASE=look SEEN=first; trials
  [ "$1" = 1 ] || return 0
  if find_tool systemctl; then
    within reload 90 "$TOOL" daemon-reload
    said reload reload
    PHASE=look SEEN=again; trials
  else
    unsaid reload 'there is no systemctl that root alone decides about'
  fi
}
