#!/usr/bin/env bash
# End-to-end test of nos on the real control plane, installed with its chart's roles: nodes with
# doubled GPUs join, pods get the slices they request, GPUs are repartitioned as demand shifts, and
# instances in use survive kill -9 of agents and partitioners and an outage of the API server.
#
#   e2e_test.sh SCRIPT BUILD_FOLDER     with NOS_CONTROLPLANE_DIR; NOS_E2E_OUTAGE: seconds (30)
# shellcheck source=test/controlplane/check.sh
. "$(dirname "$0")/check.sh"
# shellcheck source=test/controlplane/installed.sh
. "$(dirname "$0")/installed.sh"
# shellcheck source=test/controlplane/writes.sh
. "$(dirname "$0")/writes.sh"

say "pods that ask for slices run"
expect created from "$(pod keep 1 3g.20gb)$(pod small 2 1g.5gb)" k create
wait_running keep small
home=$(k get pod keep -n "$team" -o jsonpath='{.spec.nodeName}')
kept=$(instances "$home" | grep 3g.20gb)
[ -n "$kept" ] || fail "no 3g.20gb on $home"

say "each pod that gets a slice costs the API server few writes"
within 30 reported
before=$(audited)
cut=(cut-1 cut-2 cut-3 cut-4 cut-5 cut-6 cut-7 cut-8)
expect created from "$(for name in "${cut[@]}"; do pod "$name" 1 1g.5gb; done)" k create
wait_running "${cut[@]}"
# A pod with a plan of its own costs seven: Events of pod, plan and result, the layout, the capacity, and the status
# before and after. Pods that are planned together share all but the first. Two more, one of them an Event, are for a
# plan that is made again.
budget "$before" ${#cut[@]} 9 4
expect deleted k delete pod "${cut[@]}" -n "$team"

say "pods that name nos-scheduler are bound by it, with the chart's configuration and roles"
mkdir "$work/scheduler"
scheduler_config >"$work/scheduler/config.yaml"
start_scheduler a
start_scheduler b
expect created from "$(pod own-1 1 1g.5gb nos-scheduler)$(pod own-2 1 2g.10gb nos-scheduler)" k create
wait_running own-1 own-2
expect 'create pods/binding' used nos-scheduler
for name in own-1 own-2; do
  until k get events -n "$team" --field-selector "involvedObject.name=$name,reason=Scheduled" \
    -o jsonpath='{.items[*].source.component}' | grep -q nos-scheduler; do sleep 0.2; done
done
say "its configuration is read anew; a broken one changes nothing"
sed -i 's/schedulerName: nos-scheduler/schedulerName: renamed/' "$work/scheduler/config.yaml"
expect created from "$(pod renamed 1 1g.5gb renamed)" k create
wait_running renamed
sed -i 's/schedulerName: renamed/schedulerNames: wrong/' "$work/scheduler/config.yaml"
until grep -q 'failed to reload configuration files' "$work/scheduler-a.log"; do sleep 0.2; done
expect created from "$(pod still 1 1g.5gb renamed)" k create
wait_running still
until used nos-scheduler | grep -q 'patch leases'; do sleep 0.2; done # wait until it leads
if grep -l forbidden "$work"/scheduler-*.log; then fail "a permission is missing"; fi
kill_hard scheduler-a
kill_hard scheduler-b
expect deleted k delete pod own-1 own-2 renamed still -n "$team"

say "demand shifts: other slices, of the same GPUs"
expect deleted k delete pod small -n "$team"
expect created from "$(pod whole-1 1 7g.40gb)$(pod whole-2 1 7g.40gb)$(pod whole-3 1 7g.40gb)" k create
wait_running whole-1 whole-2 whole-3
[ "$(instances "$home" | grep 3g.20gb)" = "$kept" ] || fail "what 'keep' holds was touched"

say "agents and the leading partitioner are killed in the middle of a plan"
expect deleted k delete pod whole-1 whole-2 whole-3 -n "$team"
expect created from "$(replica_set slice 10 2g.10gb)" k create
expect 'condition met' k wait --for=jsonpath='{.status.readyReplicas}' -n "$team" rs/slice --timeout 60s
kill_hard agent-gpu-1
kill_hard agent-gpu-2
kill_hard partitioner-a
start_agent gpu-1
start_agent gpu-2
expect scaled k scale rs slice --replicas 8 -n "$team"
expect created from "$(pod late 3 1g.5gb)" k create
timeout=90 wait_running late
wait_replicas slice 8
# A kubelet whose plugin has just died refuses pods bound at that moment; the ReplicaSet has
# replaced them.
k delete pods -n "$team" -l app=slice --field-selector status.phase=Failed >/dev/null
[ "$(instances "$home" | grep 3g.20gb)" = "$kept" ] || fail "what 'keep' holds was touched"
start_partitioner a

say "an agent that ends first serves the pods that are bound already"
node=$(k get pod late -n "$team" -o jsonpath='{.spec.nodeName}')
expect deleted k delete pod late -n "$team" # its slices stay
kill -STOP "${pid[$node]}" # the kubelet is slow
expect created from "$(pod bound 1 1g.5gb | sed "s/^spec:/&\n  nodeName: $node/")" k create
kill "${pid[agent-$node]}"
no_slices() { [ "$(k get node "$node" -o jsonpath='{.status.allocatable.nvidia\.com/mig-1g\.5gb}')" = 0 ]; }
within 30 no_slices
read -rt 3 <> <(:) # the agent would have ended
kill -CONT "${pid[$node]}"
wait_running bound
tail --pid="${pid[agent-$node]}" -f /dev/null
start_agent "$node"
expect deleted k delete pod bound -n "$team"
expect created from "$(pod late 3 1g.5gb)" k create
timeout=90 wait_running late

say "bad input hurts only itself"
expect annotated k annotate node gpu-2 nos.nebuly.com/spec-layout-0=9g.90gb@77 \
  nos.nebuly.com/spec-gpu-99-1g.5gb=1000000000000 --overwrite
expect created from "$(pod absurd 1000000 1g.5gb)" k create
expect 'condition met' k wait --for=jsonpath='{.status.conditions[?(@.type=="nos.nebuly.com/Partitioned")].status}'=False \
  pod/absurd -n "$team" --timeout 60s
expect scaled k scale rs slice --replicas 7 -n "$team"
expect created from "$(pod another 1 2g.10gb)" k create
wait_running another
# Checked before the outage: a starting API server forbids everything until it has read the roles.
if grep -l forbidden "$work"/agent-*.log "$work"/partitioner-*.log; then fail "a permission is missing"; fi

say "the API server goes away for ${NOS_E2E_OUTAGE:-30} s"
expect deleted k delete pod late -n "$team"
expect '' "$controlplane" kill kube-apiserver
sleep "${NOS_E2E_OUTAGE:-30}" # the outage itself
expect '' "$controlplane" start kube-apiserver
expect created from "$(pod after 2 1g.5gb)" k create
timeout=120 wait_running after keep another
wait_replicas slice 7
[ "$(instances "$home" | grep 3g.20gb)" = "$kept" ] || fail "what 'keep' holds was touched"
expect '^$' k get pods -n "$team" --field-selector status.phase=Failed -o name

say "no permission was there for nothing"
# Requested only if an Event repeats, or a Lease is new.
rarely='patch events|create leases'
grep -q 'patch nodes' <(granted clusterrole/nos-mig-agent) || fail "cannot read the roles"
# CRDs of gangs and quotas are not installed here, and taint rules of devices are not served by default.
unserved='watch (podgroups|workloads|nodepools|(composite)?elasticquotas|devicetaintrules)'
# Devices are served from Kubernetes 1.34 on.
k get --raw /apis/resource.k8s.io/v1 >/dev/null 2>&1 || unserved+='|watch (deviceclasses|resourceclaims|resourceslices)'
needless=$(comm -23 \
  <({ granted clusterrole/nos-gpu-partitioner; granted role/nos-gpu-partitioner; } | sort -u) \
  <(used nos-gpu-partitioner) | grep -vxE "$rarely|$unserved")
needless+=$(comm -23 <(granted clusterrole/nos-mig-agent | sort -u) <(used nos-mig-agent) | grep -vxE "$rarely")
# No volume was bound, no pod evicted, and no claim of devices allocated.
claims='patch resourceclaims(/status|/binding)?|(create|delete) resourceclaims'
needless+=$(comm -23 \
  <({ granted clusterrole/nos-scheduler; granted role/nos-scheduler; } | sort -u) \
  <(used nos-scheduler) |
  grep -vxE "$rarely|patch persistentvolume(s|claims)|delete pods|$claims|$unserved")
[ -z "$needless" ] || fail "granted by the chart, and never asked for: $needless"

expect uninstalled "$helm" uninstall nos -n "$system" --no-hooks
refuse NotFound k get clusterrole nos-gpu-partitioner
say ok
