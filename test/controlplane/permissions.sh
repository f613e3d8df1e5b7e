# Compares granted with used permissions; sourced. Uses k(), $system and $dir.
# shellcheck shell=bash disable=SC2154
# granted ROLE [NAMESPACE]: prints "verb resource" lines.
# shellcheck disable=SC2016 # a template of kubectl
granted() {
  k get "$1" -n "${2:-$system}" -o go-template='{{range .rules}}{{$rule := .}}{{range .verbs}}{{$verb := .}}{{range $rule.resources}}{{$verb}} {{.}}{{"\n"}}{{end}}{{end}}{{end}}'
}
# used SERVICE_ACCOUNT: its requests to the API server, in the same format.
used() {
  grep -hF "\"username\":\"system:serviceaccount:$system:$1\"" "$dir"/audit*.log |
    sed -nE 's/.*"verb":"([a-z]+)".*"objectRef":\{"resource":"([a-z]+)"[^}]*"subresource":"([a-z]+)".*/\1 \2\/\3/p; t
      s/.*"verb":"([a-z]+)".*"objectRef":\{"resource":"([a-z]+)".*/\1 \2/p' | sort -u
}
