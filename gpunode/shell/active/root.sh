# shellcheck shell=sh disable=SC2034,SC2154
# A root for a container, of this host's own files: its shell, the libraries that it has mapped, and those of the C library
# that NVIDIA's programs want. Only files that root alone decides about. No ldd, which runs what it looks at.

DIRECTORIES='dev etc etc/ld.so.conf.d proc sys tmp run root usr/bin usr/sbin usr/lib var'

put_in() { # PATH of a file of the host: the same path in the root, its links as directories of the host
  trusted "$1" || return 1
  put_from=$REAL
  located "${1%/*}" || return 1
  [ -e "$ROOM/root$REAL/${1##*/}" ] && return 0
  mkdir -p "$ROOM/root$REAL" && cp -L "$put_from" "$ROOM/root$REAL/${1##*/}" && chmod 755 "$ROOM/root$REAL/${1##*/}"
}

mapped() { # PROGRAM, a shell: the files that it has mapped, as the kernel names them
  # shellcheck disable=SC2016  # expands in there
  "$1" -c 'while read -r _ _ _ _ _ path; do case $path in /*) echo "$path" ;; esac; done </proc/$$/maps' </dev/null 2>/dev/null | sort -u
}

make_root() { # -> $ROOM/root, or WHY_NOT
  umask 022
  mkdir -m 755 "$ROOM/root" || { WHY_NOT="$ROOM cannot be written"; return 1; }
  for name in bin sbin lib lib32 lib64 libx32; do
    if [ -h "/$name" ]; then
      ln -s "$(readlink "/$name")" "$ROOM/root/$name"
    elif [ -d "/$name" ]; then
      mkdir "$ROOM/root/$name"
    fi
  done
  (cd "$ROOM/root" && mkdir -p $DIRECTORIES) || { WHY_NOT="$ROOM cannot be written"; return 1; }
  put_in /bin/sh || return 1
  for file in $(mapped /bin/sh); do
    case $file in *[!A-Za-z0-9._/+-]*) continue ;; esac
    case ${file##*/} in *.so | *.so.* | ld-*) ;; *) continue ;; esac
    put_in "$file" || return 1
    directory=${file%/*} name=${file##*/}
    for link in "$directory/${name%%[-.]*}"[-.]*; do # what programs ask for is mostly a link to it: libtinfo.so.6
      [ -h "$link" ] && [ "$(readlink -f "$link")" = "$file" ] && put_in "$link"
    done
    case $name in
      libc.so.6 | libc-2.*.so)
        for other in libc.so.6 libm.so.6 libdl.so.2 libpthread.so.0 librt.so.1; do
          [ -e "$directory/$other" ] && put_in "$directory/$other"
        done ;;
    esac
  done
  for file in /lib64/ld-linux*.so.* /lib/ld-linux*.so.* /lib64/ld64.so.* /lib/ld-musl-*.so.1; do
    [ -e "$file" ] && put_in "$file"
  done
  # Where NVIDIA's tools put libraries goes by these.
  echo 'include /etc/ld.so.conf.d/*.conf' >"$ROOM/root/etc/ld.so.conf"
  [ -f /etc/debian_version ] && put_in /etc/debian_version
  echo 'root:x:0:0::/root:/bin/sh' >"$ROOM/root/etc/passwd"
  echo 'root:x:0:' >"$ROOM/root/etc/group"
  # Who opens it to read waits for ever: what the container does between two looks.
  mkfifo "$ROOM/root/wait" || { WHY_NOT='mkfifo failed'; return 1; }
  umask 077
}

machine() { # -> how images call this processor
  case $(uname -m) in
    x86_64) echo amd64 ;;
    aarch64) echo arm64 ;;
    *) uname -m ;;
  esac
}

make_image() { # -> $ROOM/image.tar, as `docker save` writes one, or WHY_NOT
  find_tool tar || { WHY_NOT='there is no tar, which makes the image'; return 1; }
  mkdir "$ROOM/image" && "$TOOL" -C "$ROOM/root" -cf "$ROOM/image/layer.tar" . || { WHY_NOT="$ROOM cannot be written"; return 1; }
  sum=$(sha256sum <"$ROOM/image/layer.tar") || { WHY_NOT='there is no sha256sum'; return 1; }
  cat >"$ROOM/image/config.json" <<END
{"architecture": "$(machine)", "os": "linux", "created": "1970-01-01T00:00:00Z",
 "config": {"Env": ["PATH=$IN_THERE", "NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_DRIVER_CAPABILITIES=compute,utility"],
  "Cmd": ["/bin/sh", "-c", "$WAIT"], "Labels": {"$LABEL": "1"}, "StopSignal": "SIGKILL"},
 "rootfs": {"type": "layers", "diff_ids": ["sha256:${sum%% *}"]}, "history": [{"created": "1970-01-01T00:00:00Z"}]}
END
  printf '[{"Config": "config.json", "RepoTags": ["%s"], "Layers": ["layer.tar"]}]\n' "$IMAGE" >"$ROOM/image/manifest.json"
  "$TOOL" -C "$ROOM/image" -cf "$ROOM/image.tar" config.json layer.tar manifest.json || { WHY_NOT="$ROOM cannot be written"; return 1; }
  rm -rf "$ROOM/image"
}
