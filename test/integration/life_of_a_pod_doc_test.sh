#!/usr/bin/env bash
# Every file that docs/life-of-a-pod.md names exists and defines the functions that the page names
# with it, the page's totals are those of its rows, and it gives a reason for each file that the rows
# return to. "The short way" has rows and totals of its own.
#
#   life_of_a_pod_doc_test.sh ROOT
set -euo pipefail

root=$1
page=$root/docs/life-of-a-pod.md
status=0
fail() { echo "FAILED: $1"; status=1; }

# One line for each hop, in reading order: ROW FILE FUNCTION ("-" for a file without functions). A
# cell is "`file`: A, B → `file`: C"; text in brackets explains and is no hop.
hops() {
  sed 's/([^()]*)//g' | awk -F'|' '/^\| [0-9]+ \|/ {
    row = $2 + 0; cell = $3
    n = split(cell, piece, /`/)
    for (i = 2; i <= n; i += 2) {
      file = piece[i]; functions = piece[i + 1]
      if (file !~ /^[a-z0-9_\/]+\.(cc|h)$/) continue
      sub(/^: */, "", functions); gsub(/→|;/, ",", functions)
      count = split(functions, f, /, */); found = 0
      for (j = 1; j <= count; ++j) {
        gsub(/[ \t]/, "", f[j])
        if (f[j] ~ /^[A-Z][A-Za-z:]*$/) { print row, file, f[j]; found = 1 }
      }
      if (!found) print row, file, "-"
    }
  }'
}
main=$(sed '/^## The short way/,$d' "$page" | hops)
short=$(sed -n '/^## The short way/,$p' "$page" | hops)
if [ "$(wc -l <<<"$main")" -lt 50 ] || [ "$(wc -l <<<"$short")" -lt 10 ]; then
  fail "the tables of the page were not understood"
fi

# A definition has a type before the name and neither assignment nor ";" in its first line. Headers
# are templates and inline members.
defines() { # FILE FUNCTION
  awk -v name="${2##*::}" '
    /^ *(return|case|else)[ (]/ || /;$/ && !/[{}]/ { next }
    $0 ~ "^ ? ? ?[A-Za-z_][A-Za-z0-9_:<>,*& ]*[ *&:]" name "\\(" || $0 ~ "^ ? ? ?" name "\\(" { found = 1 }
    END { exit !found }' "$1"
}
while read -r row file function; do
  if [ ! -f "$root/src/$file" ]; then
    fail "row $row: src/$file does not exist"
  elif [ "$function" != - ] && ! defines "$root/src/$file" "$function"; then
    fail "row $row: src/$file does not define $function"
  fi
done <<<"$main"$'\n'"$short"

# The totals, as the page defines them.
rows=$(cut -d' ' -f1 <<<"$main" | sort -u | wc -l)
functions=$(grep -v -- ' -$' <<<"$main" | cut -d' ' -f2,3 | sort -u | wc -l)
files=$(cut -d' ' -f2 <<<"$main" | sort -u | wc -l)
libraries=$(cut -d' ' -f2 <<<"$main" | cut -d/ -f1 | sort -u | wc -l)
walk=$(cut -d' ' -f2 <<<"$main" | uniq) # the files in reading order
changes=$(cut -d/ -f1 <<<"$walk" | uniq | tail -n +2 | wc -l)
returns=$(awk 'seen[$0]++' <<<"$walk")
total="The $rows rows name $functions functions in $files files of $libraries libraries, with $changes changes of library and $(grep -c . <<<"$returns") returns"
text=$(tr '\n' ' ' <"$page")
grep -qF "$total" <<<"$text" || fail "the page should say: $total"
while read -r count file; do
  grep -qE "$count (times )?to \`$file\`" <<<"$text" || fail "the page should say: $count to \`$file\`"
done < <(sort <<<"$returns" | uniq -c | awk '$1 > 2')
short_walk=$(cut -d' ' -f2 <<<"$short" | uniq)
short_total="Its rows have $(cut -d/ -f1 <<<"$short_walk" | uniq | tail -n +2 | wc -l) changes of library and $(awk 'seen[$0]++' <<<"$short_walk" | wc -l) returns"
grep -qF "$short_total" <<<"$text" || fail "the page should say: $short_total"
# Each file that is returned to has a reason: the list names it, its end or its folder.
reasons=$(sed -n '/^The returns are right/,/^## /p' "$page" | sed -n '/^- \*\*/,$p')
while read -r file; do
  grep -qF -e "\`${file##*/}\`" -e "\`${file#*/}\`" -e "\`$file\`" -e "\`${file%/*}/*\`" <<<"$reasons" ||
    fail "the page gives no reason for the return to $file"
done < <(sort -u <<<"$returns")
exit "$status"
