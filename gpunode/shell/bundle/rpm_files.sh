# rpm_files.sh DIRECTORY URL PRIMARY PATH HASH [PATH HASH]...: the index's files, each of the hash that the index says.
#
# The first of them lists the packages; it is unpacked to PRIMARY. HASH is SHA-256 or SHA-512, told apart by its length.
# Exit 65: a file is another one.  Exit 66: it cannot be fetched.  Exit 69: what unpacks it is missing.
set -eu
directory=$1 url=$2 primary=$3
shift 3
export LC_ALL=C
first=$1
while [ $# -ge 2 ]; do
  target=$directory/$1
  mkdir -p "${target%/*}"
  curl --fail --silent --show-error --location --proto '=https,http,file' --proto-redir '=https,http' --connect-timeout 20 \
    --speed-time 60 --speed-limit 1 --max-filesize 1073741824 --retry 2 --output "$target" "$url$1" </dev/null ||
    { echo "$url$1 could not be fetched" >&2; exit 66; }
  sum=sha256sum
  [ "${#2}" = 64 ] || sum=sha512sum
  found=$("$sum" <"$target")
  [ "${found%% *}" = "$2" ] || { echo "$url$1 is another file than its index says; the repository may be changing, or its mirror lags" >&2; exit 65; }
  shift 2
done
case $first in
  *.gz) tool=gzip ;;
  *.zst) tool=zstd ;;
  *.xz) tool=xz ;;
  *.bz2) tool=bzip2 ;;
  *) tool="cat" ;;
esac
command -v "$tool" >/dev/null 2>&1 || { echo "$tool is not installed, which unpacks $first" >&2; exit 69; }
(
  ulimit -f 8388608 # 4 GiB in blocks of 512 bytes: the largest distribution has a tenth of that
  if [ "$tool" = cat ]; then cat "$directory/$first"; else "$tool" -dc "$directory/$first"; fi >"$primary"
) || { echo "$first cannot be unpacked" >&2; exit 65; }
