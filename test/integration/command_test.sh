#!/bin/bash
# Tests the command line: help, one-sentence errors, exit codes, and a sandbox that leaves nothing
# behind.
#
#   command_test.sh NOS NOS_SCENARIO ROOT NOS_STUDY
#
# Every step states its expectation; the first failure ends the test.
set -u

nos=$1
scenario=$2
root=$3
study=$4
work=$(mktemp -d)
sandbox=
end() {
  [ -n "$sandbox" ] && kill "$sandbox" 2>/dev/null
  rm -rf "$work"
}
trap end EXIT
export TMPDIR=$work

# shellcheck source=test/integration/calls.sh
. "$(dirname "$0")/calls.sh"

# A sandbox checks its arguments before it starts.
quick=(--for 1 --speed 1000 --nodes 1 --gpus 1)
cat >"$work/refused.yaml" <<'EOF'
apiVersion: v1
kind: Pod
metadata: {name: good}
spec: {containers: [{name: c, image: i}]}
---
apiVersion: v1
kind: Pod
metadata: {name: bad}
spec:
  containers:
  - name: c
    image: i
    resources: {limits: {nvidia.com/mig-1g.5gb: "1"}, requests: {nvidia.com/mig-1g.5gb: "2"}}
EOF
refuse 2 "refused.yaml: document 2: Pod bad: the API server refuses it: " \
  "$nos" sandbox "${quick[@]}" --workload "$work/refused.yaml"
echo '{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}}' >"$work/deployment.yaml"
refuse 2 "nothing in the sandbox acts on a Deployment" \
  "$nos" sandbox "${quick[@]}" --workload "$work/deployment.yaml"
: >"$work/empty.yaml"
refuse 2 "there is no Pod in it" "$nos" sandbox "${quick[@]}" --workload "$work/empty.yaml"
refuse 2 "cannot read" "$nos" sandbox "${quick[@]}" --workload "$work/absent.yaml"
refuse 2 "no GPU model 'foo'" "$nos" sandbox "${quick[@]}" --model foo
refuse 2 "--for" "$nos" sandbox --for nan
refuse 2 "--nodes" "$nos" sandbox --nodes 0
refuse 2 "--bogus" "$nos" sandbox --bogus
refuse 2 "cannot write the kubeconfig" "$nos" sandbox "${quick[@]}" --kubeconfig "$work/no/file"

# Ctrl-C ends it and removes its kubeconfig; while it runs, a second one refuses to use its port and
# file.
# (A background job of a shell without job control ignores SIGINT, hence set -m.)
set -m
"$nos" sandbox --nodes 1 --gpus 1 --kubeconfig "$work/kubeconfig" >"$work/sandbox" 2>&1 &
sandbox=$!
set +m
for _ in $(seq 200); do
  [ -s "$work/kubeconfig" ] && grep -q running "$work/sandbox" && break
  grep -q kubectl "$work/sandbox" && break
  sleep 0.05
done
port=$(grep -oE '[0-9]+$' < <(grep server: "$work/kubeconfig"))
refuse 1 "listen on 127.0.0.1:$port" "$nos" sandbox "${quick[@]}" --port "$port"
grep -qF -- "choose another port with --port" "$work/err" || fail "says what to do about a port"
refuse 2 "belongs to a running sandbox" \
  "$nos" sandbox "${quick[@]}" --kubeconfig "$work/kubeconfig"
kill -INT "$sandbox"
wait "$sandbox" || fail "Ctrl-C ends the sandbox with exit code 0"
sandbox=
[ ! -e "$work/kubeconfig" ] || fail "the kubeconfig is removed"
call 0 "$nos" sandbox "${quick[@]}" --port "$port" # the port is free again
[ -z "$(find "$work" -name '*nos-sandbox*')" ] || fail "no kubeconfig is left behind"

# A plan reserves slots for pods that waited longer than the given time.
cat >"$work/starving.yaml" <<'EOF'
apiVersion: v1
kind: Node
metadata:
  name: n
  labels: {nos.nebuly.com/gpu-partitioning: mig, nvidia.com/gpu.product: NVIDIA-A100-SXM4-40GB,
           nvidia.com/gpu.count: "1"}
  annotations: {nos.nebuly.com/status-layout-0: "1g.5gb@0:used"}
status: {allocatable: {cpu: "8", pods: "110"}}
---
apiVersion: v1
kind: Pod
metadata: {name: big, creationTimestamp: "2020-01-01T00:00:00Z"}
spec: {containers: [{name: c, resources: {limits: {nvidia.com/mig-7g.40gb: "1"}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: small}
spec: {containers: [{name: c, resources: {limits: {nvidia.com/mig-1g.5gb: "1"}}}]}
EOF
plan=("$nos" plan -f "$work/starving.yaml")
call 0 "${plan[@]}"
grep -q "0 of 2 pending pods can run" "$work/out" || fail "slots are kept after ten minutes"
call 0 "${plan[@]}" --hold-after 0
grep -q "1 of 2 pending pods can run" "$work/out" || fail "--hold-after 0 keeps none"
call 0 "${plan[@]}" --hold-after 8760h
call 0 "${plan[@]}" --add-node n
grep -q "^  default/big on node n/new-0$" "$work/out" || fail "the pod that a node more would serve"
refuse 2 "go without --audit" "${plan[@]}" --add-node n --moves 1
refuse 2 "'soon' is not a duration" "${plan[@]}" --hold-after soon
refuse 2 "'-1s' is not a duration from 0 to 8760h" "${plan[@]}" --hold-after=-1s
refuse 2 "--hold-after" "$nos" sandbox "${quick[@]}" --hold-after 9000h
call 0 "$nos" sandbox "${quick[@]}" --hold-after 90s

# Why a pod is pending, and what would help.
cat >"$work/others.yaml" <<'EOF'
apiVersion: v1
kind: Pod
metadata: {name: holder}
spec: {nodeName: n, containers: [{name: c, resources: {limits: {nvidia.com/mig-1g.5gb: "1"}}}]}
status: {phase: Running}
---
apiVersion: v1
kind: Pod
metadata: {name: done}
spec: {nodeName: n, containers: [{name: c}]}
status: {phase: Succeeded}
---
apiVersion: v1
kind: Pod
metadata: {name: mine}
spec:
  schedulerName: nos-scheduler
  containers: [{name: c, resources: {limits: {nvidia.com/mig-1g.5gb: "1"}}}]
EOF
dump=(-f "$work/starving.yaml" -f "$work/others.yaml")
call 0 "$nos" explain pod default/big "${dump[@]}"
grep -q "^in the way    on node n (priority up to 0): default/holder$" "$work/out" || fail "who waits for whom"
grep -q "^remedy        wait for the end of pod default/holder on node n$" "$work/out" || fail "a remedy"
call 0 "$nos" explain pod default/small "${dump[@]}"
grep -q "^  to create   1g.5gb@[1-6] of GPU 0$" "$work/out" || fail "instances to create"
grep -q "the partitioner does so" "$work/out" || fail "who partitions for pods of kube-scheduler"
[ "$(awk '{ if (length > most) most = length } END { print most }' "$work/out")" -le 100 ] ||
  fail "an explanation fits 100 columns"
call 0 "$nos" explain pod default/mine "${dump[@]}"
grep -q "^default/mine fits on node n, whose GPUs are partitioned for it$" "$work/out" || fail "nos partitions"
call 0 "$nos" explain pod default/small --what-if -o json "${dump[@]}"
grep -q '"instance": "1g.5gb@' "$work/out" || fail "--what-if shows the new instances"
# Context objects count if the dump has them; if it has not, the output says so.
cat >"$work/around.yaml" <<'EOF'
apiVersion: v1
kind: Pod
metadata: {name: stateful}
spec:
  containers: [{name: c}]
  volumes: [{name: d, persistentVolumeClaim: {claimName: data}}]
status: {conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: so it was}]}
---
apiVersion: v1
kind: Pod
metadata: {name: m1, labels: {scheduling.x-k8s.io/pod-group: train}}
spec: {containers: [{name: c, resources: {requests: {cpu: "5"}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: m2, labels: {scheduling.x-k8s.io/pod-group: train}}
spec: {containers: [{name: c, resources: {requests: {cpu: "5"}}}]}
EOF
cat >"$work/claims.yaml" <<'EOF'
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}, spec: {storageClassName: s}}
- {apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: s}, provisioner: p,
   volumeBindingMode: Immediate}
- {apiVersion: scheduling.x-k8s.io/v1alpha1, kind: PodGroup, metadata: {name: train},
   spec: {minMember: 2}}
EOF
around=(-f "$work/starving.yaml" -f "$work/around.yaml")
call 0 "$nos" explain pod default/stateful "${around[@]}"
grep -q "PersistentVolumeClaim; add them with: kubectl get nodes,pods,persistentvolumeclaims" "$work/err" ||
  fail "claims that the dump leaves out are noted"
grep -q "note: its scheduler reported: so it was (.*--config)" "$work/err" ||
  fail "what its scheduler said is told where it says otherwise"
call 0 "$nos" explain pod default/m1 "${around[@]}"
grep -q "the dump does not contain: PodGroup;" "$work/err" || fail "groups that the dump leaves out are noted"
around+=(-f "$work/claims.yaml")
call 0 "$nos" explain pod default/stateful "${around[@]}"
[ ! -s "$work/err" ] || fail "nothing is to be noted"
grep -q "^remedy        have PersistentVolumeClaim default/data bound" "$work/out" || fail "claims count"
call 0 "$nos" explain pod default/m1 "${around[@]}"
grep -q "^group         pod group default/train: 1 of its pods find a node together" "$work/out" ||
  fail "a group is placed together"
grep -q "^remedy        for default/m2: add a node with at least 5 cpu: " "$work/out" || fail "a group's remedy"
# The owner of a configuration file: only nos scheduler partitions GPUs, and it reads its own file
# strictly.
cat >"$work/kube.yaml" <<'EOF'
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins: {filter: {enabled: [{name: Coscheduling}]}}
EOF
call 0 "$nos" explain pod default/small "${dump[@]}" --config "$work/kube.yaml"
grep -q "read as kube-scheduler's" "$work/err" || fail "whose file it is taken for"
grep -q "the partitioner does so" "$work/out" || fail "kube-scheduler's own file has no GPUs partitioned"
sed 's/Coscheduling/GpuPartitioning/' "$work/kube.yaml" >"$work/ours.yaml"
call 0 "$nos" explain pod default/small "${dump[@]}" --config "$work/ours.yaml"
grep -q "whose GPUs are partitioned for it" "$work/out" || fail "nos scheduler in the place of kube-scheduler"
sed 's/default-scheduler/nos-scheduler/' "$work/kube.yaml" >"$work/both.yaml"
refuse 2 "there is no plugin 'Coscheduling'" \
  "$nos" explain pod default/small "${dump[@]}" --config "$work/both.yaml"
cat >"$work/ours.yaml" <<'EOF'
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{schedulerName: nos-scheduler}, {schedulerName: nos-packs}]
EOF
call 0 "$nos" explain pod default/small "${dump[@]}" --config "$work/ours.yaml"
grep -q "the partitioner does so" "$work/out" || fail "a pod that no profile serves is kube-scheduler's"
# A gang whose members name two different profiles.
cat >"$work/profiles.yaml" <<'EOF'
apiVersion: v1
kind: List
items:
- {apiVersion: scheduling.x-k8s.io/v1alpha1, kind: PodGroup, metadata: {name: two},
   spec: {minMember: 2}}
- {apiVersion: v1, kind: Pod, metadata: {name: g1, labels: {scheduling.x-k8s.io/pod-group: two}},
   spec: {schedulerName: nos-scheduler, containers: [{name: c}]}}
- {apiVersion: v1, kind: Pod, metadata: {name: g2, labels: {scheduling.x-k8s.io/pod-group: two}},
   spec: {schedulerName: nos-packs, containers: [{name: c}]}}
EOF
two=(-f "$work/starving.yaml" -f "$work/profiles.yaml")
call 0 "$nos" explain pod default/g1 "${two[@]}" --config "$work/ours.yaml"
grep -q "^default/g1 fits on node n" "$work/out" || fail "members of all profiles count"
call 0 "$nos" explain pod default/g1 "${two[@]}"
grep -q "1 of the 2 pods that are placed together are there" "$work/out" ||
  fail "members of schedulers that are not known do not count"
refuse 2 "pod default/nope not found" "$nos" explain pod default/nope "${dump[@]}"
refuse 2 "'a/b/c' is neither NAME nor NAMESPACE/NAME" "$nos" explain pod a/b/c "${dump[@]}"
refuse 2 "give the namespace once" "$nos" explain default/big -n default "${dump[@]}"
# Names of pods like those of kubectl: with or without the kind and the namespace.
call 0 "$nos" explain pod default/big "${dump[@]}"
cp "$work/out" "$work/big"
for words in "big" "default/big" "pod big" "pods big" "po/big" "big -n default" "pod/big -n default"; do
  # shellcheck disable=SC2086
  call 0 "$nos" explain $words "${dump[@]}"
  cmp -s "$work/out" "$work/big" || fail "nos explain $words explains default/big"
done
call 0 "$nos" explain holder "${dump[@]}"
grep -q "^default/holder runs on node n" "$work/out" || fail "explain says where a pod is"
grep -q "^uses  *1g.5gb@0 of GPU 0 (A100-40GB)" "$work/out" || fail "explain says what a pod uses"
call 0 "$nos" explain holder -o json "${dump[@]}"
grep -q '"state": "running"' "$work/out" || fail "the state of a pod for programs"
refuse 2 "pod default/holder is running" "$nos" explain holder --what-if "${dump[@]}"
call 0 "$nos" explain pod default/done "${dump[@]}"
grep -q "^default/done has completed on node n" "$work/out" || fail "explain says that a pod has ended"
refuse 2 "pod is required" "$nos" explain
refuse 2 "give one pod" "$nos" explain pod

# Versions, help and completion, in all spellings.
call 0 "$nos" version
version=$(cat "$work/out")
call 0 "$nos" --version
[ "$(cat "$work/out")" = "$version" ] || fail "--version is version"
call 0 "$nos" help simulate chaos
grep -q "Usage: nos simulate chaos" "$work/out" || fail "help COMMAND is COMMAND --help"
call 0 "$study" help churn
grep -q "Usage: nos-study churn" "$work/out" || fail "the studies have help of their own"
for group in get explain simulate; do
  call 0 "$nos" "$group" --help
  all=$(grep -c "^  nos " "$work/out") own=$(grep -c "^  nos $group " "$work/out")
  if [ "$all" -ne "$own" ] || [ "$own" -eq 0 ]; then fail "nos $group --help has its own examples"; fi
done
for command in hold version; do
  call 0 "$nos" "$command" --help
  ! grep -q "^Examples" "$work/out" || fail "nos $command --help has no examples of other commands"
done
call 0 "$nos" --help
grep -q "^Help for a command: nos COMMAND --help" "$work/out" || fail "nos --help has examples"
call 0 "$nos" completion bash
cp "$work/out" "$work/completion"
offered=$(bash -c ". '$work/completion'; COMP_WORDS=(nos sandbox --model ''); COMP_CWORD=3
  _nos; echo \"\${COMPREPLY[*]}\"")
[[ $offered == *H100-80GB* ]] || fail "completion offers GPU models, not: $offered"
complete() { # prints the completions of the last word
  bash -c ". '$work/completion'; COMP_WORDS=(\"\$@\"); COMP_CWORD=\$((\$# - 1))
    _nos; echo \" \${COMPREPLY[*]} \"" bash "$@"
}
[[ $(complete nos '') == *" help "* ]] || fail "completion offers help"
[[ $(cd "$work" && complete nos help '') == *" simulate "* ]] || fail "help is of commands"
[[ $(cd "$work" && complete nos help plan '') == "  " ]] || fail "help is not of files"
refuse 2 "nos help: unknown command 'nope' (try --help)" "$nos" help nope
refuse 2 "nos help simulate: unknown command 'nope'" "$nos" help simulate nope
refuse 2 "nos simulate: unknown command 'nope'" "$nos" simulate nope --help
refuse 2 'resets requires --hybrid' "$nos" simulate chaos --resets
refuse 2 'days must be above 0' "$study" scaling --days -1
refuse 2 'days must be above 0' "$study" scaling --days 0
refuse 2 'first-day requires --pods' "$study" scaling --first-day 3
refuse 2 'pods excludes --slices' "$study" scaling --pods - --slices 0.5
for policy in unschedulable repartition; do
  refuse 2 'unknown layout "nonsense"; there are whole' \
    "$study" scaling --policy "$policy" --layout nonsense
done
# The old names of the studies work for one minor version, with a warning.
call 0 "$nos" simulate churn --gpus 2 --arrivals 50 -o json
cp "$work/out" "$work/old.json"
grep -qx "nos simulate churn: deprecated, use nos-study churn" "$work/err" ||
  fail "old names of the studies warn"
call 0 "$study" churn --gpus 2 --arrivals 50 -o json
cmp -s "$work/out" "$work/old.json" || fail "old names of the studies give the same answer"
mkdir "$work/alone"
cp "$nos" "$work/alone/nos"
call 2 "$work/alone/nos" simulate churn
grep -q "nos-study is neither beside nos nor in PATH" "$work/err" || fail "the studies need nos-study"
# The old names of flags and policies work too. Help and completion do not show them.
call 0 "$nos" simulate chaos --scheduler-partitions
cp "$work/out" "$work/new.txt"
call 0 "$nos" simulate chaos --scheduler-cuts
cmp -s "$work/out" "$work/new.txt" || fail "--scheduler-cuts is --scheduler-partitions"
grep -qx "nos simulate chaos: --scheduler-cuts is deprecated, use --scheduler-partitions" "$work/err" ||
  fail "the old name of a flag warns"
call 0 "$nos" simulate chaos --help
grep -q -- "--scheduler-partitions" "$work/out" || fail "help shows the current flag"
! grep -q -- "--scheduler-cuts" "$work/out" || fail "help hides the old flag"
[[ $(complete nos simulate chaos '') == *" --scheduler-partitions "* ]] || fail "completion offers the flag"
[[ $(complete nos simulate chaos '') != *"--scheduler-cuts"* ]] || fail "completion hides the old flag"
call 0 "$study" scaling --days 0.1 --policy repartition --repartition-seconds 20
cp "$work/out" "$work/new.txt"
call 0 "$study" scaling --days 0.1 --policy recut --cut-seconds 20
cmp -s "$work/out" "$work/new.txt" || fail "recut is repartition"
for old in "--cut-seconds is deprecated, use --repartition-seconds" "recut is deprecated, use repartition"; do
  grep -qx "nos-study scaling: $old" "$work/err" || fail "old names of flags and policies warn"
done
refuse 2 "nos: unknown command 'nope'" "$nos" nope
# A group of commands without a command shows its help.
for group in "" get simulate; do
  # shellcheck disable=SC2086
  call 0 "$nos" $group
  cp "$work/out" "$work/bare"
  # shellcheck disable=SC2086
  call 0 "$nos" $group --help
  cmp -s "$work/out" "$work/bare" || fail "nos $group without a command is nos $group --help"
done
refuse 2 "nos get: unknown command 'deployments'" "$nos" get deployments
# kubectl finds a plugin by its name.
ln -s "$nos" "$work/kubectl-nos"
call 0 "$work/kubectl-nos" get --help
grep -q "^Usage: kubectl nos get" "$work/out" || fail "help of the plugin names kubectl"

# A failed write to standard output is an error.
for command in "plan -f $work/starving.yaml" "plan -f $work/starving.yaml -o json" version --help \
  "completion bash" "sandbox ${quick[*]}"; do
  # shellcheck disable=SC2086
  (call 1 bash -c "exec $nos $command >/dev/full") || exit 1
  [ "$(cat "$work/err")" = "nos: failed to write to standard output" ] ||
    fail "one sentence about a full disk: nos $command"
  refuse 1 "standard output is closed" bash -c "exec $nos $command >&-"
done
"$nos" sandbox --nodes 1 --gpus 1 --speed 100 2>"$work/err" | head -1 >"$work/out"
[ ! -s "$work/err" ] || fail "who stops reading is not told off"

# The directory for the kubeconfig does not exist.
TMPDIR=$work/nope refuse 2 "set TMPDIR or give --kubeconfig FILE" \
  "$nos" sandbox "${quick[@]}"
TMPDIR=$work/nope call 0 "$nos" sandbox "${quick[@]}" --kubeconfig "$work/own"

call 0 "$nos" sandbox --for 3 --speed 100 --nodes 1 --gpus 1
grep -q "nos sandbox   time 3s " "$work/out" || fail "--for ends exactly"
echo 'models: 3' >"$work/catalogue.yaml"
call 2 "$nos" sandbox "${quick[@]}" --catalogue "$work/catalogue.yaml"
grep -q "catalogue.yaml: models" "$work/err" || fail "the catalogue is read"

# A plan covers the pods that the partitioner plans for, and duplicate objects are refused.
cat >"$work/node.yaml" <<'EOF'
apiVersion: v1
kind: Node
metadata:
  name: n
  labels: {nos.nebuly.com/gpu-partitioning: mig, nvidia.com/gpu.product: NVIDIA-A100-SXM4-40GB,
           nvidia.com/gpu.count: "1"}
status: {allocatable: {cpu: "8", pods: "110"}}
EOF
cat >"$work/daemon.yaml" <<'EOF'
apiVersion: v1
kind: Pod
metadata:
  name: d
  ownerReferences: [{apiVersion: apps/v1, kind: DaemonSet, name: d, uid: "1"}]
spec: {containers: [{name: c, resources: {limits: {nvidia.com/mig-1g.5gb: "1"}}}]}
EOF
call 0 "$nos" plan -f "$work/node.yaml" -f "$work/daemon.yaml"
grep -q "0 of 0 pending pods can run" "$work/out" || fail "pods of a DaemonSet are not planned for"
grep -q "note: 1 pending pod is not planned for" "$work/err" || fail "says so"
refuse 2 "node.yaml: node n occurs twice; give every object once" \
  "$nos" plan -f "$work/node.yaml" -f "$work/node.yaml"
refuse 2 "daemon.yaml: pod default/d occurs twice; give every object once" \
  "$nos" plan -f "$work/node.yaml" -f "$work/daemon.yaml" -f "$work/daemon.yaml"
sed -e 's/mig-1g.5gb: "1"/mig-1g.5gb: 9E/' -e '/ownerReferences/d' "$work/daemon.yaml" \
  >"$work/huge.yaml"
call 0 "$nos" plan -f "$work/node.yaml" -f "$work/huge.yaml"
grep -qF "more than 10^18 x 1g.5gb" "$work/out" || fail "a huge amount is not misquoted"

# A pod with GPU requirements is shown with the capacity left where the plan places it.
cat >"$work/hybrid.yaml" <<'EOF'
apiVersion: v1
kind: Node
metadata:
  name: h
  labels: {nos.nebuly.com/gpu-partitioning: hybrid, nvidia.com/gpu.count: "2"}
  annotations:
    nos.nebuly.com/status-model-0: H100-80GB+GPU+TIME-4
    nos.nebuly.com/status-other-model-0: MPS-79GB
    nos.nebuly.com/status-layout-0: 1g.10gb@0:free
    nos.nebuly.com/status-model-1: GPU-47GB+GPU+TIME-4
    nos.nebuly.com/status-other-model-1: MPS-47GB
    nos.nebuly.com/status-layout-1: ""
status: {allocatable: {cpu: "8", pods: "110"}}
---
apiVersion: v1
kind: Pod
metadata: {name: share}
spec: {hostIPC: true, containers: [{name: c, resources: {limits: {nvidia.com/gpu-40gb: "1"}}}]}
---
apiVersion: v1
kind: Pod
metadata:
  name: need
  annotations: {nos.nebuly.com/need-memory: 9Gi, nos.nebuly.com/need-isolation: "true"}
spec: {containers: [{name: c}]}
EOF
call 0 "$nos" plan -f "$work/hybrid.yaml"
grep -q "^note: [^ ]* states GPU requirements and gets nvidia.com/mig-1g.10gb: .* has room now (h)" "$work/err" ||
  fail "the GPU that the plan shares for another is not counted as the one that is partitioned"

# The picture in docs/sandbox.md equals the sandbox's output, except for the speed, and for decisions, whose times are
# those at which telemetry sees them.
picture() {
  sed -nE '/^nos sandbox   time /,/^dashboard: .*try:/{/^dashboard: /d;s/speed [^ ]+ /speed /;p}' "$1" |
    sed '/^DECISIONS/,$d'
}
call 0 "$nos" sandbox --speed 1000 --for 60
picture "$work/out" >"$work/shown"
sed -n '/^    nos sandbox   time /,/^[^ ]/{/^[^ ]/d;s/^    //;p}' "$root/docs/sandbox.md" |
  sed '$d' >"$work/page"
picture "$work/page" >"$work/pictured"
[ -s "$work/pictured" ] || fail "docs/sandbox.md has a picture of the sandbox"
diff "$work/pictured" "$work/shown" >"$work/out" ||
  fail "docs/sandbox.md shows what 'nos sandbox --speed 20 --for 60' prints; put that in"

# Every sharing mode is shown, for the demo and for the examples.
for workload in demo "$root/examples/modes"; do
  call 0 "$nos" sandbox --speed 1000 --for 60 --workload "$workload"
  for way in MIG MPS 'time slices' whole; do
    grep -qE "^node-[1-3] gpu [0-3] [A-Z0-9-]+ +$way +\|" "$work/out" || fail "$workload shows $way"
  done
done
# The examples also fit other GPU products.
call 0 "$nos" sandbox --speed 1000 --for 60 --nodes 3 --hybrid 2 --model H100-80GB \
  --workload "$root/examples/modes"
grep -q "no pod is waiting" "$work/out" || fail "each pod of examples/modes runs on H100s"
# Nodes with a DRA driver serve claims, and without such a node nothing would.
call 0 "$nos" sandbox --speed 1000 --for 60 --nodes 2 --dra 1 --workload "$root/examples/claims"
grep -qE '^node-2 gpu 0 .*\|noteb' "$work/out" || fail "the claim's pod is on its slice"
grep -q "no pod is waiting" "$work/out" || fail "each pod of examples/claims runs"
call 0 "$nos" sandbox --speed 1000 --for 60 --nodes 2 --dra 1
grep -qE '^node-2 gpu 0 .*\|claim-w' "$work/out" || fail "the demo has pods with claims"
refuse 2 "no node has a DRA driver; give --dra 1" "$nos" sandbox "${quick[@]}" \
  --workload "$root/examples/claims"
refuse 2 "raise --nodes" "$nos" sandbox --for 1 --nodes 2 --mps 1 --hybrid 2
refuse 2 "raise --nodes" "$nos" sandbox --for 1 --nodes 2 --mps 3
call 0 "$nos" sandbox "${quick[@]}" --hybrid 1 --model H100-80GB
grep -q "^node-1 gpu 0 H100-80GB   " "$work/out" || fail "the board's own name"

# Output to a file or a pipe is not truncated.
sed 's/name: n$/name: a-node-with-such-a-long-name-that-a-row-of-a-table-does-not-fit-80-columns-any-more/' \
  "$work/starving.yaml" >"$work/long.yaml"
call 0 "$nos" plan -f "$work/long.yaml" --hold-after 0
grep -q " 1g.5gb@\*0,+[1-6]$" "$work/out" || fail "a table into a file is not cut"

# Unsupported arguments of a simulation are refused.
printf '1g.5gb: 1\n1g.10gb: 1\n' >"$work/mix.yaml"
refuse 2 "policy repack has no exact test for this mix" \
  "$study" churn --mix "$work/mix.yaml" --policy repack


# The operator accepts the configuration of the Go implementation, and reports keys without effect.
cat >"$work/operator.yaml" <<'YAML'
apiVersion: config.nos.nebuly.com/v1alpha1
kind: OperatorConfig
health: {healthProbeBindAddress: ":8081"}
metrics: {bindAddress: "127.0.0.1:8080"}
webhook: {port: 9443}
leaderElection: {leaderElect: true, resourceName: operator.nos.nebuly.com}
nvidiaGpuResourceMemoryGB: 16
YAML
call 0 "$nos" operator --config "$work/operator.yaml" --print-config
grep -q "^nvidiaGpuResourceMemoryGB: 16$" "$work/out" || fail "what whole GPUs count for"
grep -q "webhook.port has no effect" "$work/err" || fail "what has no effect is said"
sed -i '/^webhook/d; s/^nvidia.*/nvidiaGpuResourceMemoryGB: 0/' "$work/operator.yaml"
refuse 2 "nvidiaGpuResourceMemoryGB" "$nos" operator --config "$work/operator.yaml"

# Old names in configuration files are warnings; a null beside one counts as not set.
cat >"$work/scheduler.yaml" <<'YAML'
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{schedulerName: nos-scheduler, pluginConfig: [{name: GpuCutting, args: {}}]}]
YAML
call 0 "$nos" scheduler --config "$work/scheduler.yaml" --print-config
grep -q '\[warning\].*GpuCutting is deprecated' "$work/err" || fail "the old name of a plugin warns"
cat >"$work/partitioner.yaml" <<'YAML'
apiVersion: config.nos.nebuly.com/v1alpha1
kind: GpuPartitionerConfig
planBudgetSeconds: 5
planTimeoutSeconds: null
YAML
call 0 "$nos" partitioner --config "$work/partitioner.yaml" --print-config
grep -q '^planTimeoutSeconds: 5$' "$work/out" || fail "the value of the old key"
grep -q '\[warning\].*planBudgetSeconds is deprecated' "$work/err" || fail "the old key warns"

# The scenario runner.
call 0 "$scenario" --help
grep -q "Examples:" "$work/out" || fail "help has examples"
refuse 2 "unknown flag '--bogus'" "$scenario" --bogus
refuse 2 "no scenario at" "$scenario" "$work/absent"
refuse 2 "name a scenario" "$scenario"
echo "all steps passed"
