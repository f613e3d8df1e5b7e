#!/usr/bin/env bash
# docs/troubleshooting.md has a paragraph for each reason of an Event or a condition, each code of a
# reason, remedy or obstacle, and each alert, and none for anything else. Each says what to do, and
# each alert links to its own.
cd "$(dirname "$0")/../.." || exit 1
page=docs/troubleshooting.md alerts=deploy/prometheus/alerts.yaml
status=0
fail() { echo "FAILED: $1"; status=1; }

sources() { # PATTERN FOLDER...: what matches in their C++ code, one match a line
  local pattern=$1
  shift
  grep -rhozP "$pattern" "$@" --include='*.h' --include='*.cc' --exclude='*_test.cc' --exclude-dir=testing |
    tr '\0\n' '\n '
}
words() { grep -oE '"[A-Z][A-Za-z]+"' | tr -d '"'; }
# A vocabulary: `kName = "Name"` in a header of constants.
vocabulary() { sources '\bk\w+ = "[A-Z]\w+"' "$@" | words; }

events() { # reasons of the functions that make Events; the kinds of their objects are none
  local files
  mapfile -t files < <(find src -name events.h -not -path '*/collector/*' | sort)
  sed -E 's/\{\{"[A-Za-z]+"//; s#//.*##' "${files[@]}" | words
  # Reasons that their callers choose.
  sources 'Lack\(\*pod, "[A-Z]\w+"' src/agent | words
}
conditions() {
  sources 'Condition\{[^;{}]*?"(True|False)",\s*"[A-Z]\w+"' src/agent src/controllers | words
  sources '\{std::move\(type\), "(True|False)",\s*"[A-Z]\w+"' src/controllers | words
  sources '\{k\w+Condition, "(True|False)",\s*"[A-Z]\w+"' src/controllers | words
  sources '\bis\(\s*"(True|False)",\s*"[A-Z]\w+"' src/controllers | words
  sources '\bcreated.ok\(\) \? "[A-Z]\w+" : "[A-Z]\w+"' src/agent | words
  sources 'const char\* reason = [^;]*;' src/controllers src/agent | words
  sources '\{"PodScheduled", "False", [^}]*|status_\.Report\(\{pod, "[A-Z]\w+"|ending\.reason = "[A-Z]\w+"' \
    src/controllers | words
  sources 'const char\* k\w+ = "[A-Z]\w+"' src/controllers/autoscaler.h src/planning/moves.h | words
  sources 'reason = "Healthy"' src/agent | words
  sources '(?s)ReasonOf\([^()]*\) \{.*?\n\}' src/agent/device_plugin | words      # ways of a hand-over
  sources '(Failed\(|problem_ = \{)"[A-Z]\w+"' src/agent/device_plugin | words # what keeps from it
  sources '"True",\s*"Mig\w+"' src/agent/sharing | words
}
health() { # of GPUs, also as taints of devices
  sources '(?s)HealthCondition::Reason\(\) const \{.*?\n\}' src/device | sed 's/Xid{}/Xid/; s/"Unknown"//' | words
  sources '(\.fault|kUnserved) = "[A-Z]\w+"' src/agent/claims | words
}
names() {
  events
  conditions
  health
  vocabulary src/scheduling/reasons.h src/scheduling/remedies.h src/gpu/obstacle.h
  sed -nE 's/^      - alert: //p' "$alerts"
}
for each in events conditions health; do
  [ "$($each | sort -u | wc -l)" -ge 7 ] || fail "$each: found only $($each | sort -u | tr '\n' ' ')"
done

known=$(names | grep -vxE 'True|False|PodScheduled' | sort -u)
paragraphs=$(sed -nE 's/^#### ([A-Z][A-Za-z]+)$/\1/p' "$page" | sort)
twice=$(uniq -d <<<"$paragraphs")
[ -z "$twice" ] || fail "$page explains twice: $twice"
for one in $(comm -23 <(echo "$known") <(uniq <<<"$paragraphs")); do
  fail "$page has no heading '#### $one'"
done
for one in $(comm -13 <(echo "$known") <(uniq <<<"$paragraphs")); do
  fail "$page explains $one, which nothing gives as a reason"
done

# A paragraph without a meaning or without an action helps no reader.
awk '
  function check() { if (name != "" && (text !~ /\*\*Means:\*\*/ || text !~ /\*\*Do:\*\*|what to do/)) print name }
  /^#+ / { check(); name = text = "" }
  /^#### / { name = $2; next }
  { text = text $0 "\n" }
  END { check() }' "$page" | { ! grep . ; } || fail "these paragraphs of $page lack '**Means:**' or '**Do:**'"

while read -r alert; do
  grep -A20 -x "      - alert: $alert" "$alerts" | sed '2,${/- alert:/,$d}' |
    grep -qxF "          runbook: $page#${alert,,}" || fail "$alert has no runbook $page#${alert,,}"
done < <(sed -nE 's/^      - alert: //p' "$alerts")
[ "$status" -ne 0 ] || echo "ok: $(wc -w <<<"$known") paragraphs"
exit "$status"
