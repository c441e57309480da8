# shellcheck shell=sh
# versions() of same_version.sh: SUSE's kernel module packages have the kernel's version too: 595.91.07_k6.4.0_150600.21.
rpm -qa --qf '%{NAME} %{VERSION}\n' "$@" | sed 's/_k.*//'
