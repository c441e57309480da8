# rpm_index.sh DIRECTORY URL KEYRING: the repomd.xml of the repository at URL, and its signature where it has one.
#
# Both go to DIRECTORY/repodata. A signature counts where one of the keys in KEYRING made it. Prints `signed` or `unsigned`.
# Exit 65: it is another's, or broken.  Exit 66: the index cannot be fetched.  Exit 69: a tool is missing.
set -eu
directory=$1 url=$2 keyring=$3
export LC_ALL=C
for tool in curl gpg; do
  command -v "$tool" >/dev/null 2>&1 || { echo "$tool is not installed" >&2; exit 69; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export GNUPGHOME="$work"
fetch() { # PATH; fails (2) where the server says that there is none
  code=0
  curl --fail --silent --show-error --location --proto '=https,http,file' --proto-redir '=https,http' --connect-timeout 20 \
    --max-time 120 --max-filesize 1048576 --retry 2 --output "$directory/$1" "$url$1" 2>"$work/log" </dev/null || code=$?
  case $code in
    0) return 0 ;;
    22 | 37) return 2 ;;
  esac
  cat "$work/log" >&2
  echo "$url$1 could not be fetched" >&2
  exit 66
}
mkdir -p "$directory/repodata"
fetch repodata/repomd.xml || { echo "${url}repodata/repomd.xml is not there: no repository for rpm" >&2; exit 66; }
fetch repodata/repomd.xml.asc || { rm -f "$directory/repodata/repomd.xml.asc"; echo unsigned; exit 0; }
gpg --batch --quiet --no-autostart --import "$keyring" >"$work/log" 2>&1 </dev/null || { cat "$work/log" >&2; exit 65; }
gpg --batch --no-autostart --verify "$directory/repodata/repomd.xml.asc" "$directory/repodata/repomd.xml" >"$work/log" 2>&1 </dev/null ||
  { cat "$work/log" >&2; exit 65; }
echo signed
