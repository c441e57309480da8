# shellcheck shell=sh disable=SC2034,SC2154
# Brings gpunode onto the host it runs on, and verifies it before a byte of it runs. What stands above gives SHA256 and SIZE
# (bytes) of its zipapp; URL, or AT, a file that the image has, or neither: then it comes on standard input; and STATE, a
# directory that root alone may open; and WORDS, options for `gpunode setup`, each quoted.
set -u
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export PATH
umask 077

die() { # CODE WORDS...
  code=$1; shift
  printf 'gpunode: %s\n' "$*" >&2
  exit "$code"
}

find_python() { # -> PYTHON: the system's own, 3.10 or later
  for PYTHON in /usr/bin/python3 /usr/bin/python3.14 /usr/bin/python3.13 /usr/bin/python3.12 /usr/bin/python3.11 /usr/bin/python3.10; do
    [ -x "$PYTHON" ] && "$PYTHON" -I -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null && return 0
  done
  die 4 'this host has no /usr/bin/python3 of 3.10 or later; install one (EL 9: dnf install python3.12)'
}

own_state() { # STATE is ours, who are root, and nobody else's
  mkdir -p "$STATE" || die 1 "$STATE cannot be made"
  # Only root can make anything in /var/lib; what others could have put there is not used.
  if [ -h "$STATE" ] || [ "$(stat -c %u "$STATE")" != "$(id -u)" ]; then die 1 "$STATE is not a directory of root's own; remove it"; fi
  chmod 700 "$STATE" || die 1 "$STATE cannot be closed to others"
}

intact() { [ -f "$1" ] && [ ! -h "$1" ] && [ "$(sha256sum <"$1")" = "$SHA256  -" ]; } # FILE

# The network may come up late, so it is tried for a minute. No more is read than gpunode has bytes. The address is no argument, which
# others could read: it may hold a signature.
DOWNLOAD='import http.client, os, sys, time, urllib.error, urllib.request
size = int(sys.argv[1])
for pause_s in (2, 4, 8, 16, 32, None):
    try:
        with urllib.request.urlopen(os.environ["GPUNODE_URL"], timeout=30) as answer:
            data = answer.read(size + 1)
        break
    except urllib.error.HTTPError as error:
        why, again = f"the server answers {error.code}", error.code in (408, 429) or error.code >= 500
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = getattr(error, "reason", error)
        why, again = getattr(reason, "strerror", None) or type(reason).__name__, True
    if pause_s is None or not again:
        sys.exit(f"gpunode: the address of gpunode cannot be read: {why}")
    time.sleep(pause_s)
sys.stdout.buffer.write(data)'

fetch() { # -> gpunode's bytes, or somebody else's
  if [ -n "$URL" ]; then
    GPUNODE_URL=$URL "$PYTHON" -I -c "$DOWNLOAD" "$SIZE"
  elif [ -n "$AT" ]; then
    [ -f "$AT" ] || { printf 'gpunode: %s is not on this host; the image was to have it\n' "$AT" >&2; return 1; }
    head -c "$((SIZE + 1))" <"$AT"
  else
    head -c "$((SIZE + 1))"
  fi
}

bring() { # -> PYZ: a file of root's with that SHA256. Needs PYTHON
  own_state
  PYZ=$STATE/gpunode-$SHA256.pyz
  if intact "$PYZ"; then return 0; fi
  new=$(mktemp "$STATE/new.XXXXXX") || die 1 "no file can be made in $STATE"
  fetch >"$new" || { rm -f "$new"; die 1 'nothing was changed: gpunode is not here'; }
  if ! intact "$new"; then
    got=$(sha256sum <"$new"); rm -f "$new"
    die 1 "nothing was run: what came is not the gpunode of this export; its SHA-256 is ${got%% *}, and $SHA256 is wanted"
  fi
  chmod 700 "$new" && sync "$new" && mv -f "$new" "$PYZ" || die 1 "gpunode cannot be kept in $STATE"
}

going_on() { # whether a setup goes on after a reboot of its own (planner/resume.py)
  case $(systemctl is-active gpunode-resume.service 2>/dev/null) in activating | reloading | deactivating) return 0 ;; esac
  return 1
}

reboot_is_asked_for() { [ -e /etc/systemd/system/gpunode-resume.service ]; }

wait_for_resumed() { while going_on; do sleep 2; done; }
