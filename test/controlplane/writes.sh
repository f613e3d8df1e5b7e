# Counts the writes of nos to the API server, from its audit log; sourced. Uses fail(), within(), k(), $nodes,
# $system and $dir.
# shellcheck shell=bash disable=SC2154
audited() { cat "$dir"/audit*.log | wc -l; }
# writes_since LINE: its successful writes after this line of the log, "account verb resource", without those to
# Leases, which do not depend on pods.
writes_since() {
  cat "$dir"/audit*.log | tail -n "+$(($1 + 1))" | grep -F "\"username\":\"system:serviceaccount:$system:nos-" |
    grep -E '"verb":"(create|update|patch|delete)"' | grep -E '"code":20[0-9]' |
    sed -nE 's/.*"verb":"([a-z]+)".*"username":"[^"]*:nos-([a-z-]+)".*"objectRef":\{"resource":"([a-z]+)"([^}]*"subresource":"([a-z]+)")?.*/\2 \1 \3 \5/p' |
    sed 's/ $//' | grep -v ' leases$'
}
# reported: the agents have reported the result of the last plans.
reported() {
  local node
  for node in "${nodes[@]}"; do
    k get node "$node" -o go-template='{{with .metadata.annotations}}{{if ne (index . "nos.nebuly.com/spec-partitioning-plan") (index . "nos.nebuly.com/status-partitioning-plan")}}waits{{end}}{{end}}' |
      grep -q waits && return 1
  done
  return 0
}
# budget LINE PODS WRITES EVENTS: since this line of the log nos has made at most so many writes a pod, and so many of
# them were Events.
budget() {
  local all events
  within 30 reported
  all=$(writes_since "$1")
  events=$(grep -c ' events$' <<<"$all")
  sort <<<"$all" | uniq -c
  say "$(wc -l <<<"$all") writes for $2 pods, $events of them Events"
  [ "$(wc -l <<<"$all")" -ge "$2" ] || fail "the audit log lacks writes"
  [ "$(wc -l <<<"$all")" -le $(($2 * $3)) ] || fail "more than $3 writes a pod"
  [ "$events" -le $(($2 * $4)) ] || fail "more than $4 Events a pod"
}
