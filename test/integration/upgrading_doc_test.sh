#!/usr/bin/env bash
# docs/upgrading.md lists exactly the configuration keys and metrics whose old names still work, and
# both keys of its table of JSON are written in each output.
cd "$(dirname "$0")/../.." || exit 1
sources() { grep -rhozE "$1" src --include='*.h' --include='*.cc' --exclude='*_test.cc' | tr '\0\n' '\n '; }
# shellcheck disable=SC2016
listed() {
  sed -n '/^## Configuration keys/,/^## Commands/p' docs/upgrading.md |
    sed -nE 's/^\| ([^|]+ \| )?`([A-Za-z_]+)` \| `([A-Za-z_]+)` \|$/\2 \3/p' | sort -u
}
renamed() {
  sources 'Renamed\("[A-Za-z]+",[[:space:]]*"[A-Za-z]+"\)' | sed -nE 's/.*"([A-Za-z]+)",[^"]*"([A-Za-z]+)".*/\1 \2/p'
  # A metric with two names: name, help text, old name.
  sources '"nos_[a-z_]+",[[:space:]]*("[^"]*"[[:space:]]*)+,[[:space:]]*"nos_[a-z_]+"\}' |
    sed -nE 's/^"(nos_[a-z_]+)".*"(nos_[a-z_]+)"\}.*/\2 \1/p'
}
[ "$(renamed | wc -l)" -gt 20 ] || { echo "found only: $(renamed)"; exit 1; }
diff <(listed) <(renamed | sort -u) || exit 1
# Each output that writes an old key: both keys, and the function that writes them.
outputs() {
  cat <<'END'
way sharingMode src/cmd/query/get_report.cc GpuJson
way sharingMode src/cmd/query/get_report.cc AddPlanRow
way sharingMode src/cmd/query/plan_report.cc GpuToJson
ways sharingModes src/cmd/query/get_report.cc GpuJson
ways sharingModes src/cmd/query/plan_report.cc GpuToJson
way sharing_mode src/telemetryreporter/sampler.cc Sampler::LayoutOf
way sharing_mode src/telemetryreporter/sampler.cc SampleJson
way sharing_mode src/telemetry/records.cc LayoutRecord
way sharing_mode src/telemetryserver/api/views.cc AppendGpu
way sharing_mode src/controllers/collector/records.cc LayoutRecord
cut repartition src/scheduling/explain/text.cc PlaceJson
cut repartition src/scheduling/explain/text.cc NearestJson
beingCut beingPartitioned src/scheduling/explain/text.cc ToJson
learnt learned src/cmd/query/pool_report.cc ReportPools
would_cut would_partition src/cmd/telemetry/what_if.cc WhatIfJson
END
}
# body FILE FUNCTION: its text without comments.
body() { sed -n "/^[A-Za-z].*[ :]$2(/,/^}/p" "$1" | sed 's#//.*##'; }
failed=0
while read -r old new file function; do
  for key in "$old" "$new"; do
    body "$file" "$function" | grep -q "\"$key\"" ||
      { echo "$file: $function does not write the key $key"; failed=1; }
  done
done < <(outputs)
[ $failed = 0 ] || exit 1
# shellcheck disable=SC2016
json=$(sed -n '/^## JSON/,/^## Reasons/p' docs/upgrading.md |
  sed -nE 's/^\|.*\| `([A-Za-z_]+)` \| `([A-Za-z_]+)` \|$/\1 \2/p' | sort -u)
diff <(echo "$json") <(outputs | cut -d' ' -f1,2 | sort -u) || exit 1
echo ok
