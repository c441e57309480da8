# shellcheck shell=sh disable=SC2034
# gpunode's probe, the round trip: what is on this host, read-only, one round trip (facts/wire.py reads the answer).
# POSIX sh; runs unchanged under dash, bash and busybox ash. Sent on stdin to `sh -s`, so nothing is left on the host.
# facts/collect.py puts the other files of this directory and shell/daemon/query.sh before it, and the call after it.
#
# Rules, each paid for by someone:
# - Tools that can hang get a file for output and a limit. On the limit: TERM once, never KILL (a killed NVML client
#   has frozen GPUs: dcgm-exporter#84), and the child is left behind. It never holds the SSH pipe.
# - nvidia-smi comes last, after all else is on the wire, and only while the module is loaded: it would load it.
# - docker.socket is never touched while dockerd is down: that would start it.
# - Under GPUNODE_ROOT (tests) only tools inside that root are asked.
# - Nothing is run, opened with root's rights or trusted before shell/trust.sh has agreed.

UNITS='nvidia-cdi-refresh.path nvidia-cdi-refresh.service
nvidia-persistenced.service nvidia-fabricmanager.service nvidia-imex.service nvidia-dcgm.service docker.service docker.socket
containerd.service crio.service kubelet.service k3s.service k3s-agent.service rke2-server.service rke2-agent.service
k0sworker.service k0scontroller.service snap.microk8s.daemon-containerd.service snap.microk8s.daemon-kubelite.service
snap.docker.dockerd.service dnf-automatic-install.timer dnf-automatic.timer apt-daily-upgrade.timer
systemd-timesyncd.service chrony.service chronyd.service ntp.service ntpd.service ntpsec.service gpunode-mig.service gpunode-*.service'

look_up_tools() { # BINS and the tools in them, with one stat; files and directories that are no links
  set -- "$R/"
  for bin in $BINS; do
    path=${bin#"$R"}
    while [ -n "$path" ]; do
      case " $* " in *" $R$path "*) break ;; esac
      [ -d "$R$path" ] && [ ! -h "$R$path" ] && set -- "$@" "$R$path"
      path=${path%/*}
    done
    [ -h "$bin" ] && continue
    for name in $TOOLS stat lsinitrd systemctl dkms modinfo kmod ldconfig lspci nvidia-ctk nvidia-container-cli uname dmesg journalctl; do
      [ -f "$bin/$name" ] && [ ! -h "$bin/$name" ] && set -- "$@" "$bin/$name"
    done
  done
  for path in "$R"/usr/local/cuda-[0-9]*; do
    [ -d "$path" ] && [ ! -h "$path" ] && set -- "$@" "$path"
  done
  set -f # the words are globs
  for path in /etc /etc/docker /etc/containerd /etc/containerd/conf.d /etc/apt /etc/dnf /etc/zypp /etc/modprobe.d /etc/modules-load.d \
    /etc/systemd /etc/systemd/system /etc/cdi /run /run/containerd /run/cdi /var /var/lib /var/lib/gpunode /usr/share /usr/share/keyrings \
    $SOURCE_FILES $KEY_FILES; do
    path=${path%/\*}
    [ -d "$R$path" ] && [ ! -h "$R$path" ] && set -- "$@" "$R$path"
  done
  set +f
  look_up "$@"
}

search() { # GIVEN, the PATH that came -> PATH and BINS: what is trusted of it; the system's directories come first in PATH
  BINS=
  old=$IFS; IFS=:; set -f
  for bin in $1:/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin; do
    case $bin in *[!A-Za-z0-9._/+~@-]* | [!/]* | '') continue ;; esac
    case " $BINS" in *" $bin "*) ;; *) BINS="$BINS$bin " ;; esac
  done
  set +f; IFS=$old
  look_up_tools
  for bin in $BINS; do
    case :$PATH: in *":$bin:"*) ;; *) trusted "$bin" && PATH=$PATH:$bin ;; esac
  done
}

work_folder_goes() {
  trap '' HUP INT QUIT PIPE TERM
  for _ in 1 2 3; do # again, when a job that was left behind wrote into it meanwhile
    rm -rf "$T" 2>/dev/null && return 0
  done
}

work_folder() { # -> T, which goes away in every ending
  T='' ended=''
  trap 'ended=1' HUP INT QUIT PIPE TERM # heeded once it is known what has to go
  for path in /run /dev/shm /tmp /var/tmp; do
    # Deaf while it is made: who is ended halfway has made it and cannot say so.
    if (trap '' HUP INT QUIT PIPE TERM; mkdir "$path/.gpunode-probe.$$") 2>/dev/null; then T=$path/.gpunode-probe.$$; break; fi
  done
  if [ -n "$T" ]; then trap work_folder_goes 0; fi
  trap 'exit 130' HUP INT QUIT PIPE TERM
  [ -z "$ended" ] || exit 130
  [ -n "$T" ] || return 1
  # KILL leaves no time to; only root writes /run, and a pid may be another namespace's.
  for path in /run/.gpunode-probe.*; do
    [ -d "$path" ] && [ ! -d "/proc/${path##*.}" ] && [ -n "$(find "$path" -maxdepth 0 -mmin +10 2>/dev/null)" ] && rm -rf "$path" 2>/dev/null
  done
  return 0
}

of_the_machine() { # kernel, bus, firmware and devices: those below an image are of the machine that builds it
  job lspci 5 lspci -Dnn -d 10de:
  job kernel_log 10 do_kernel_log
  job room 5 do_room
  if [ -d "$R/sys/module/nvidia" ]; then job busy 10 do_busy; fi
  if [ -d "$R/proc/driver/nvidia" ]; then
    job driver_version 5 /bin/cat "$R/proc/driver/nvidia/version"
    job driver_params 5 /bin/cat "$R/proc/driver/nvidia/params"
  fi
  for name in pci modules driver_modules security devices dev_char kernel_state; do
    "$name" >"$T/$name" 2>/dev/null
  done
  line_of cmdline >"$T/cmdline"
  line_of version >"$T/kernel_version"
  proc_devices >"$T/proc_devices" 2>/dev/null
}

begin_answer() { # [ROOT] -> the answer's first line, and all that its sections need: R, T, BINS, NAP
  R=''
  given=${PATH:-} root=${1:-${GPUNODE_ROOT:-}}
  set --
  umask 077
  LC_ALL=C; LANG=C; TZ=UTC; export LC_ALL LANG TZ
  PATH=/usr/sbin:/usr/bin:/sbin:/bin
  if ! command -v stat >/dev/null 2>&1; then PATH=$given; fi # a system that keeps its tools elsewhere
  export PATH
  unset LD_PRELOAD CUDA_VISIBLE_DEVICES NVIDIA_VISIBLE_DEVICES DOCKER_HOST DOCKER_CONTEXT
  TICKS=0 EPOCH=''
  cd / || return 1
  printf '@gpunode-facts 1\n'
  if ! work_folder; then
    printf '@ probe rc=1\n|no directory to write in: /run, /dev/shm, /tmp and /var/tmp are full or read-only\n@end\n'
    return 1
  fi
  who
  search "$given"
  if [ -n "${root%/}" ]; then
    R=${root%/}
    BINS="$R/usr/local/sbin $R/usr/local/bin $R/usr/sbin $R/usr/bin $R/sbin $R/bin"
    look_up_tools
  fi
  up; BEGUN=$UP
  if sleep 0.02 2>/dev/null; then NAP='sleep 0.02'; else NAP='sleep 1'; fi
  if ! begin_pieces; then
    printf '@ probe rc=1\n|nothing random to be had: neither /proc/sys/kernel/random/uuid nor /dev/urandom can be read\n@end\n'
    return 1
  fi
}

gpunode_probe() {
  begin_answer "$@" || return 0
  for path in / /usr; do # below it nothing is trusted, and a host without tools should say why
    if [ -d "$R$path" ] && ! trusted "$path"; then
      say "@ trust unreadable no program of this host was run: $WHY_NOT"
      break
    fi
  done

  kernel_tells
  setting 2>/dev/null
  # slow and hanging things first, in the background
  # shellcheck disable=SC2086
  job services 5 systemctl show --no-pager -p Id,LoadState,ActiveState,SubState,UnitFileState,MainPID,NRestarts,RequiredBy,RequisiteOf,BoundBy,ConsistsOf,WantedBy,UpheldBy,TriggeredBy,ExecStart $UNITS
  for listing in $LISTINGS; do job "$listing" 15 do_listing "$listing"; done
  job dkms 10 dkms status
  job nvidia_ko 10 do_nvidia_ko
  job modinfo 5 do_modinfo
  job ldconfig 5 do_ldconfig
  job ctk_version 5 nvidia-ctk --version
  identity >"$T/identity" 2>/dev/null
  if [ "$SETTING" != image ]; then of_the_machine; fi
  for name in driver_marks kernel_trees next_boot blacklist keyrings package_lock auto_upgrade apt_archives \
    toolkit tools; do
    "$name" >"$T/$name" 2>/dev/null
  done
  if dracut_conf >"$T/dracut" 2>/dev/null; then
    initramfs_images >"$T/initramfs_images" 2>/dev/null
    if [ "$ME" = 0 ] && [ "$SETTING" != image ] && [ -d "$R/sys/module/nvidia" ] && doubtful 2>/dev/null; then job initramfs 15 do_initramfs; fi
  fi
  finish services
  exec_starts
  processes
  shims >"$T/shims" 2>/dev/null
  container_engines
  kubernetes >"$T/kubernetes" 2>/dev/null
  if [ "$SETTING" != image ]; then
    system >"$T/system" 2>/dev/null
    topology >"$T/topology" 2>/dev/null
    if [ -n "$SWITCH_PORTS" ]; then switch_config >"$T/switch_config" 2>/dev/null; fi
  fi
  os_release
  for name in identity pci modules driver_modules driver_marks cmdline kernel_version kernel_trees next_boot blacklist security keyrings \
    package_lock auto_upgrade apt_archives processes shims toolkit tools devices dev_char proc_devices kubernetes; do
    show "$name"
  done
  if [ -e "$T/kernel_state" ]; then show kernel_state; fi
  if [ -e "$T/system" ]; then show system; show topology; fi
  if [ -e "$T/switch_config" ]; then show switch_config; fi
  if [ -e "$T/initramfs_images" ]; then show dracut; show initramfs_images; fi
  while read -r name <&3; do show "$name"; done 3<"$T/late"
  show sockets
  if [ -s "$T/socket_modes" ]; then show socket_modes; fi
  if [ -s "$T/ignored" ]; then show ignored; fi
  if [ "$SETTING" != image ]; then show mps; fi
  sources >"$T/sources" 2>/dev/null
  show sources
  key_files >"$T/keyring_bytes" 2>/dev/null
  show keyring_bytes
  # /var/run is /run on every current distribution; the same file twice would look like two specifications.
  for path in "$R"/etc/cdi/* "$R"/var/run/cdi/*; do
    case $path in *.yaml | *.yml | *.json) [ -e "$path" ] && printf '%s\n' "${path#"$R"}" ;; esac
  done >"$T/cdi"
  show cdi
  while read -r path; do set -- "$@" "$path"; done <"$T/sources"
  while read -r path; do set -- "$@" "$path"; done <"$T/cdi"
  while read -r path; do set -- "$@" "$path"; done <"$T/wanted"
  engine_files >"$T/engine_files"
  while read -r path; do set -- "$@" "$path"; done <"$T/engine_files"
  if [ -s "$T/kubelet_texts" ]; then
    while read -r path; do set -- "$@" "$path"; done <"$T/kubelet_texts"
  fi
  show_files "$@" /etc/nvidia-container-runtime/config.toml /run/reboot-required /run/reboot-required.pkgs \
    $HOLD_FILES \
    /etc/dracut.conf.d/gpunode-nvidia.conf /etc/dkms/framework.conf.d/gpunode-toolset.conf /etc/dkms/gpunode-toolset.env \
    /etc/dnf/modules.d/nvidia-driver.module \
    /etc/modprobe.d/gpunode-nouveau.conf /etc/modules-load.d/gpunode-nvidia.conf /etc/modprobe.d/gpunode-coherent.conf \
    /etc/udev/rules.d/71-gpunode-dev-char.rules /etc/gpunode/mig.conf /etc/nvidia-container-toolkit/nvidia-cdi-refresh.env \
    /etc/gpunode/mig.sh /etc/systemd/system/gpunode-mig.service /etc/systemd/system/gpunode-resume.service \
    /etc/containerd/config.toml /etc/docker/daemon.json
  while read -r name path <&3; do show_user_file "$name" "$path"; done 3<"$T/user_files"
  handler_paths >"$T/handler_paths" 2>/dev/null
  if [ -s "$T/handler_paths" ]; then show handler_paths; fi
  if [ -r "$R/var/lib/gpunode/journal.jsonl" ]; then
    tail -n 2000 "$R/var/lib/gpunode/journal.jsonl" >"$T/journal"
    show journal
  elif [ -e "$R/var/lib/gpunode/journal.jsonl" ] || { [ -d "$R/var/lib/gpunode" ] && [ ! -x "$R/var/lib/gpunode" ]; }; then
    say '@ journal unreadable permission denied'
  fi

  for name in services $LISTINGS dkms nvidia_ko modinfo ldconfig ctk_version; do emit "$name"; done
  hook_log
  for name in lspci room driver_version driver_params busy initramfs hook_log; do
    if [ -e "$T/$name.limit" ]; then emit "$name"; fi
  done
  while read -r name <&3; do emit "$name"; done 3<"$T/slow"
  if [ "$SETTING" != image ]; then emit kernel_log; fi
  flush
  smi
  look_again
  show_clock
  flush
  printf '@end\n'
}
