#!/usr/bin/env bash
# A cluster with Nebuly's device plugin for MPS shares, on the real control plane: nos writes the
# plugin's ConfigMap and the node's label, shares follow demand, held shares stay, other users'
# entries in the ConfigMap stay, a restarted agent continues after a kill, and a node that leaves
# MPS loses label and key.
#
#   nebuly_test.sh SCRIPT BUILD_FOLDER     with NOS_CONTROLPLANE_DIR
# shellcheck source=test/controlplane/check.sh
. "$(dirname "$0")/check.sh"
if [ "$(id -u)" != 0 ]; then
  echo "skipped: compute modes are root's"
  exit 77
fi
here=$(dirname "$(readlink -f "$0")")
label=nos.nebuly.com/gpu-partitioning
nodes=(gpu-2)
map="nos-device-plugin-configs"
values=(--set gpuPartitioner.migAgent.mps.enabled=true --set gpuPartitioner.migAgent.mps.plugin=nebuly
  --set "gpuPartitioner.migAgent.mps.nebuly.configMapNamespace=nos-e2e-$$")
offers=$(mktemp)
node_flags=(--offers "$offers")

keys() { k get configmap "$map" -n "$system" -o go-template="{{range \$key, \$text := .data}}{{\$key}} {{end}}"; }
# Plays the plugin, as far as it offers what its file says, and the kubelet, which projects the
# ConfigMap into the plugin's pod.
plugin() {
  local uid folder key
  uid=$(k get pod nebuly-plugin -n "$system" -o jsonpath='{.metadata.uid}')
  folder=$work/pods/$uid/volumes/kubernetes.io~configmap/configs
  mkdir -p "$folder"
  while :; do
    for key in $(keys 2>/dev/null); do
      if [ -f "$folder/$key" ]; then continue; fi
      k get configmap "$map" -n "$system" -o go-template="{{index .data \"$key\"}}" >"$folder/.new" &&
        mv "$folder/.new" "$folder/$key"
    done
    key=$(k get node gpu-2 -o jsonpath='{.metadata.labels.nvidia\.com/device-plugin\.config}' 2>/dev/null)
    if [ -n "$key" ] && [ ! -f "$folder/$key" ]; then echo "the label names $key, which is no file" >>"$work/plugin.bad"; fi
    if [ -f "$folder/$key" ]; then
      awk '/memoryGB:/ {gib = $2} /replicas:/ {count = $2}
        /- "?GPU-/ {gsub(/[" ]|^ *-/, ""); sub(/^-/, ""); for (n = 0; n < count; n++) print "nvidia.com/gpu-" gib "gb " $0 "::" gib "::" n}' \
        "$folder/$key" >"$offers.new" && mv "$offers.new" "$offers"
    elif [ -z "$key" ]; then
      : >"$offers"
    fi
    read -rt 0.2 <> <(:)
  done
}
before_agents() {
  sed -i 's/"model": "A100-40GB"/&, "mig": false/g' "$work/gpu-2.json"
  expect labeled k label node gpu-2 "$label=mps" --overwrite
  sed -i "s|^  nebuly:|&\n    podsFolder: $work/pods|" "$work/agent-gpu-2.yaml"
  expect created k create configmap "$map" -n "$system" --from-literal=other-node_00000000=theirs
  expect created from "apiVersion: v1
kind: Pod
metadata: {name: nebuly-plugin, namespace: $system, labels: {app.kubernetes.io/name: nebuly-nvidia-device-plugin}}
spec: {nodeName: gpu-2, containers: [{name: main, image: example/any}]}" k create
  plugin &
  pid[plugin]=$!
}
at_end() { rm -f "$offers" "$offers.new"; }
# shellcheck source=test/controlplane/installed.sh
. "$here/installed.sh"

# share NAME GIB: a pod, as YAML.
share() {
  printf -- '\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: %s, namespace: %s}\nspec:\n  hostIPC: true\n' "$1" "$team"
  printf '  containers:\n  - {name: main, image: example/any, resources: {limits: {nvidia.com/gpu-%sgb: 1}}}\n' "$2"
}
key() { k get node gpu-2 -o jsonpath='<{.metadata.labels.nvidia\.com/device-plugin\.config}>'; }
status() { k get node gpu-2 -o json | grep -oE '"nos.nebuly.com/status-(layout|holders)-[01]": "[^"]*"'; }

say "shares are made by the plugin, as its ConfigMap says"
expect created from "$(share keep 20)$(share small 7)$(share other 30)" k create
wait_running keep small other
soon "20gb@[0-9]+=$team/keep" status
expect '<gpu-2_[0-9a-f]+>' key
soon '^gpu-2_[0-9a-f]+ other-node_00000000 $' keys

say "demand shifts: what is held stays, and old keys go"
before=$(key)
expect deleted k delete pod small other -n "$team"
expect created from "$(share wide 39)$(share rest 19)" k create
wait_running wide rest keep
[ "$(key)" != "$before" ] || fail "the label still names $before"
soon '^gpu-2_[0-9a-f]+ other-node_00000000 $' keys

say "the agent is killed: the next one finds everything right and leaves it"
before=$(key)
kill_hard agent-gpu-2
start_agent gpu-2
soon "39gb@[0-9]+=$team/wide" status
expect deleted k delete pod rest -n "$team"
expect created from "$(share late 18)" k create
wait_running late keep wide

say "the label of somebody else's making is put right"
expect labeled k label node gpu-2 nvidia.com/device-plugin.config=other-node_00000000 --overwrite
kill_hard agent-gpu-2
start_agent gpu-2
soon '<gpu-2_[0-9a-f]+>' key
wait_running late keep wide

say "the node leaves MPS: neither label nor key is left"
expect labeled k label node gpu-2 "$label=none" --overwrite
expect deleted k delete pod keep late wide -n "$team"
soon '^<>$' key
soon '^other-node_00000000 $' keys
if [ -f "$work/plugin.bad" ]; then fail "$(cat "$work/plugin.bad")"; fi
if grep -l forbidden "$work"/agent-*.log "$work"/partitioner-*.log; then fail "a permission is missing"; fi
say ok
