# shellcheck shell=sh disable=SC2154
# After simulate.sh, with its $answer and: branch=570 family=nvidia leads='libcuda1 libnvidia-compute'
#
# Exit 66: what would be installed is of another branch, as where the packages of one have become transitional and depend
# on those of another. The version says which, of packages of the family with a branch in their names
# (libnvidia-compute-580-server) and of the leads; helpers and modules have versions of their own. Where these are of the
# branch and of several versions, one line for the first package of each: mixed NAME VERSION
set_of() { # NAME VERSION UPSTREAM BRANCH, a line for each
  awk -v family="$family" -v leads=" $leads " '
    $1 == "remove" || NF < 3 { next }
    index(leads, " " $2 " ") || (index($2, family) && $2 ~ /-[3-9][0-9][0-9](-|$)/) {
      version = $3; sub(/^[0-9]+:/, "", version); sub(/-.*/, "", version)
      number = version; sub(/\..*/, "", number)
      if (number ~ /^[3-9][0-9][0-9]$/) print $2, $3, version, number
    }' "$answer"
}

others=$(set_of | awk -v branch="$branch" '$4 != branch && shown < 4 { printf "%s%s %s", (shown++ ? ", " : ""), $1, $2 }')
[ -z "$others" ] || { echo "branch $branch was chosen, and what would come is of another one: $others" >&2; exit 66; }
set_of | awk '!seen[$3]++ { lines = lines "mixed " $1 " " $2 "\n"; count++ } END { if (count > 1) printf "%s", lines }'
