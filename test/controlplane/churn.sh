#!/usr/bin/env bash
# Pods with slices come and go, driven by the events of the API server and a seed: each pod that starts
# lets another one end, each that has ended is followed by a new one.
#
#   churn.sh KUBECTL NAMESPACE SEED PODS FOLDER
#
# There are PODS pods at a time, with the label churn=yes. FOLDER/choice has a line of words PROFILE:SCHEDULER, from
# which new pods are chosen; the last one is given to one pod at a time. It may be replaced at any time. Pods
# of two schedulers should not ask for one profile: each scheduler gives away what the other has just given.
# While there is a file FOLDER/hold, no pod is deleted. FOLDER/log gets a line for each step:
#
#   created NAME PROFILE SCHEDULER   started NAME   ended NAME    deleted because this script asked for it
#   refused NAME                     the kubelet had no device for it (UnexpectedAdmissionError)
#   lost NAME                        it ended although it was not deleted
#
# Runs until SIGTERM.
set -u
kubectl=$1 namespace=$2 RANDOM=$3 count=$4 folder=$5
declare -A asked=() started=() rare=()
number=0

k() { "$kubectl" -n "$namespace" "$@"; }
note() { printf '%s\n' "$*" >>"$folder/log"; }

create() {
  local choices choice profile scheduler name=churn-$((++number))
  read -ra choices <"$folder/choice"
  choice=${choices[RANDOM % ${#choices[@]}]}
  if [ "$choice" = "${choices[-1]}" ] && [ ${#rare[@]} -gt 0 ]; then choice=${choices[0]}; fi
  if [ "$choice" = "${choices[-1]}" ]; then rare[$name]=1; fi
  profile=${choice%:*} scheduler=${choice#*:}
  k create -f - >/dev/null <<Y && note "created $name $profile $scheduler"
apiVersion: v1
kind: Pod
metadata: {name: $name, labels: {churn: "yes"}}
spec:
  schedulerName: $scheduler
  containers: [{name: main, image: example/any, resources: {limits: {nvidia.com/mig-$profile: 1}}}]
Y
}
end() {
  asked[$1]=1
  k delete pod "$1" --wait=false >/dev/null 2>&1
}
# end_another: deletes one of the pods that run.
end_another() {
  local names=() name
  [ ! -f "$folder/hold" ] || return
  for name in "${!started[@]}"; do
    [ -n "${asked[$name]:-}" ] || names+=("$name")
  done
  [ ${#names[@]} -lt 2 ] || end "${names[RANDOM % ${#names[@]}]}"
}
# happened EVENT NAME PHASE REASON
happened() {
  case $1:$3 in
    DELETED:*)
      if [ -n "${asked[$2]:-}" ]; then note "ended $2"; else note "lost $2"; fi
      unset "started[$2]" "asked[$2]" "rare[$2]"
      create
      ;;
    *:Running)
      [ -z "${started[$2]:-}" ] || return
      started[$2]=1
      note "started $2"
      end_another
      ;;
    *:Failed)
      [ -z "${asked[$2]:-}" ] || return
      if [ "$4" = UnexpectedAdmissionError ] && [ -z "${started[$2]:-}" ]; then note "refused $2"; else note "lost $2"; fi
      end "$2"
      ;;
  esac
}

trap 'kill "$watch" 2>/dev/null; exit 0' TERM
watch=''
for ((i = 0; i < count; ++i)); do create; done
# A watch ends with the API server, and now and then by itself.
while :; do
  coproc WATCH {
    exec "$kubectl" -n "$namespace" get pods -l churn=yes --watch --output-watch-events -o \
      jsonpath='{.type} {.object.metadata.name} {.object.status.phase} {.object.status.reason}{"\n"}' 2>/dev/null
  }
  watch=$WATCH_PID
  while read -r event name phase reason; do
    happened "$event" "$name" "$phase" "$reason"
  done <&"${WATCH[0]}"
  wait "$watch" 2>/dev/null
done
