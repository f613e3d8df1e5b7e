#!/usr/bin/env bash
# docs/upgrading.md lists exactly the configuration keys and metrics whose old names still work, and
# both keys of its table of JSON are written.
cd "$(dirname "$0")/../.." || exit 1
sources() { grep -rhozE "$1" src --include='*.h' --include='*.cc' --exclude='*_test.cc' | tr '\0\n' '\n '; }
# shellcheck disable=SC2016
listed() { sed -nE 's/^\| ((partitioner|autoscaler) \| )?`([A-Za-z_]+)` \| `([A-Za-z_]+)` \|$/\3 \4/p' docs/upgrading.md | sort -u; }
renamed() {
  sources 'Renamed\("[A-Za-z]+",[[:space:]]*"[A-Za-z]+"\)' | sed -nE 's/.*"([A-Za-z]+)",[^"]*"([A-Za-z]+)".*/\1 \2/p'
  # A metric with two names: name, help text, old name.
  sources '"nos_[a-z_]+",[[:space:]]*("[^"]*"[[:space:]]*)+,[[:space:]]*"nos_[a-z_]+"\}' |
    sed -nE 's/^"(nos_[a-z_]+)".*"(nos_[a-z_]+)"\}.*/\2 \1/p'
}
[ "$(renamed | wc -l)" -gt 20 ] || { echo "found only: $(renamed)"; exit 1; }
diff <(listed) <(renamed | sort -u) || exit 1
# shellcheck disable=SC2016
json=$(sed -n '/^## JSON/,/^## Reasons/p' docs/upgrading.md |
  sed -nE 's/^\|.*\| `([A-Za-z_]+)` \| `([A-Za-z_]+)` \|$/\1 \2/p')
[ "$(wc -l <<<"$json")" -gt 5 ] || { echo "found only: $json"; exit 1; }
for key in $json; do
  sources "\"$key\"" | grep -q . || { echo "no JSON has the key $key"; exit 1; }
done
echo ok
