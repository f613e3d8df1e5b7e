#!/usr/bin/env bash
# Tests that the chart takes the values files of the charts that it replaces, does what they meant
# and says what it replaced; and that it refuses unknown values by name. Renders only: chart_test.sh
# shows the objects to an API server.
#
#   values_test.sh SCRIPT [BUILD]     BUILD: nos reads the files that the chart writes
# shellcheck source=test/controlplane/check.sh
. "$(dirname "$0")/check.sh"
root=$(cd "$(dirname "$0")/../.." && pwd)
files=$root/test/data/values
helm=$("$controlplane" binary helm)
case $? in
  0) ;;
  77)
    echo "skipped: no helm"
    exit 77
    ;;
  *) fail "no helm" ;;
esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The chart, with a template that shows the lines of NOTES.txt, which helm template leaves out.
cp -r "$root/deploy/helm/nos" "$work/chart"
# shellcheck disable=SC2016
printf '{{- include "nos.prepare" . -}}\nnotes:\n{{- range .Values.prepared.notes }}\n  - {{ print "NOTE " . | quote }}\n{{- end }}\n' \
  >"$work/chart/templates/notes.yaml"
render() { "$helm" template nos "$work/chart" -n nos-system --kube-version 1.28.0 "$@"; }
only() { render -s "templates/$1.yaml" "${@:2}"; }
# count TEXT COMMAND...: how many lines of the output contain TEXT
count() { "${@:2}" | grep -cE -- "$1"; }
# config FILE KIND: a daemon's configuration in rendered objects
config() {
  awk -v kind="$2" '/^  (scheduler_)?config.yaml: \|/ {on = 1; text = ""; next}
    on && /^    / {text = text substr($0, 5) "\n"; next}
    on {if (text ~ "kind: " kind) printf "%s", text; on = 0}' "$1"
}

expect '' "$root/script/known-values" --check

# The values of every earlier chart keep their meaning.
for name in go go-subcharts walkai; do
  of=(-f "$files/$name.yaml")
  expect 'kind: DaemonSet' render "${of[@]}"
  expect_no 'ghcr.io|kube-rbac-proxy' render "${of[@]}"
  expect '^5$' count 'image: "nos:0.1.0"' render "${of[@]}"
  expect 'NOTE gpuPartitioner.image, .* name images of an earlier project; nos:0.1.0 runs instead' only notes "${of[@]}"
  # Limits are those of this chart.
  for part in partitioner agent scheduler operator; do
    limits() { only "$part" "$@" | grep -A3 'limits:'; }
    [ "$(limits "${of[@]}" | grep memory:)" = "$(limits | grep memory:)" ] || fail "$name: memory limit of $part"
    expect_no 'cpu: (500m|100m)' limits "${of[@]}"
  done
  expect 'NOTE Limits of 128Mi .* gpuPartitioner.resources.limits \(512Mi\)' only notes "${of[@]}"
  expect 'NOTE gpuPartitioner.migAgent.resources.limits.cpu: 100m' only notes "${of[@]}"
  # The agent tolerates what it tolerated, with the taint that the old template had built in.
  for part in 'key: nvidia.com/gpu$' 'key: kubernetes.azure.com/scalesetpriority' 'key: n8s.nebuly.ai/auto-mig-enabled'; do
    expect '^1$' count "$part" only agent "${of[@]}"
  done
  # One replica; the scheduler's ConfigMap may be missing.
  expect 'replicas: 1' only partitioner "${of[@]}"
  expect 'configMap: {name: nos-scheduler-config, optional: true}' only partitioner "${of[@]}"
  expect 'configMap: {name: nos-scheduler, optional: true}' only partitioner "${of[@]}"
  expect 'NOTE gpuPartitioner.scheduler.config.name: .* ConfigMap nos-scheduler-config; while there is none, with scheduler.config' \
    only notes "${of[@]}"
  for value in shareTelemetry gpuPartitioner.kubeRbacProxy gpuPartitioner.devicePlugin; do
    expect "NOTE No effect: $value" only notes "${of[@]}"
  done
  # The list of geometries is taken as it is, with its error.
  expect '3g.20gb: 1' only partitioner-config "${of[@]}"
  expect '7g.79gb: 1' only agent "${of[@]}"
  expect 'runAsUser: 1000' only partitioner "${of[@]}"
done
for name in go go-subcharts; do
  of=(-f "$files/$name.yaml")
  expect 'batchWindowTimeoutSeconds: 60' only partitioner-config "${of[@]}"
  expect 'batchWindowIdleSeconds: 10' only partitioner-config "${of[@]}"
  expect 'logLevel: info' only partitioner-config "${of[@]}"
  expect '^2$' count 'MemoryGB: 32' render "${of[@]}"
  expect 'NOTE gpuPartitioner.gpuAgent: nodes labelled .*=mps' only notes "${of[@]}"
  expect 'NOTE No effect: operator.kubeRbacProxy' only notes "${of[@]}"
  expect_no 'nos-priority' render "${of[@]}"
done
expect_no NOTE only notes
expect 'NOTE nos-operator is operator now' only notes -f "$files/go-subcharts.yaml"
expect_no 'name: nos-operator$' render --set nos-operator.enabled=false --set operator.crds.enabled=false
expect 'MemoryGB: 40' only operator --set global.nvidiaGpuResourceMemoryGB=40
expect '^2$' count 'MemoryGB: 40' render --set-string nvidiaGpuResourceMemoryGB=40
refuse 'nvidiaGpuResourceMemoryGB' render --set nvidiaGpuResourceMemoryGB=forty

# Names of objects and the label app.kubernetes.io/name.
named() { render --set "$1.fullnameOverride=mine" --set "$1.nameOverride=my-name" "${@:2}"; }
for part in scheduler operator gpuPartitioner:gpu-partitioner; do
  expect_no "name: nos-${part#*:}(-metrics)?$" named "${part%:*}"
  expect 'name: mine$' named "${part%:*}"
  expect 'name: mine-metrics$' named "${part%:*}"
  expect 'app.kubernetes.io/name: my-name$' named "${part%:*}"
done
expect 'configMap: {name: mine, optional: true}' named scheduler -s templates/partitioner.yaml
expect 'name: mine-mig-agent$' render --set fullnameOverride=mine
expect 'app.kubernetes.io/name: my-name$' render --set nameOverride=my-name

# Images: one for all, or another for one component; images of the Go project in a mirror are refused.
expect '^5$' count 'image: "registry.test/nos:v7"' render --set image.repository=registry.test/nos,image.tag=v7
expect '^5$' count 'image: "registry.test/nos:0.1.0"' render --set gpuPartitioner.image.repository=registry.test/nos
expect '^1$' count 'image: "registry.test/nos:0.1.0"' render --set operator.image.repository=registry.test/nos
expect 'NOTE operator.image.tag \(0.1.2\): this daemon runs another version than the rest, whose tag is 0.1.0' only notes \
  --set operator.image.tag=0.1.2
expect_no 'another version' only notes --set image.tag=v7 --set gpuPartitioner.image.tag=v7
digest=sha256:$(printf 'a%.0s' {1..64})
expect '^5$' count "image: \"registry.test/nos@$digest\"" render --set "image.repository=registry.test/nos,image.digest=$digest"
expect '^1$' count 'image: "registry.test/nos:v7"' render --set "image.repository=registry.test/nos,image.digest=$digest" \
  --set operator.image.tag=v7
refuse 'image.digest: sha256:abc is not' render --set image.digest=sha256:abc
refuse 'set image.tag or image.digest' render --set image.repository=registry.test/nos:v7
refuse 'set image.tag or image.digest' render --set "image.repository=registry.test:5000/nos@$digest"
expect '^5$' count 'image: "registry.test:5000/nos:0.1.0"' render --set image.repository=registry.test:5000/nos
refuse 'a digest is image.digest' render --set "image.tag=$digest"
refuse 'name the image' render --set image.repository=
# make deploy, with a helm that prints the values which it is given
deployed() { make -s -C "$root" deploy HELM=echo IMG="$1" | grep -o 'repository=[^ ]*'; }
expect "^repository=registry.test:5000/nos,gpuPartitioner.image.tag=,gpuPartitioner.image.digest=$digest\$" \
  deployed "registry.test:5000/nos@$digest"
expect '^repository=registry.test:5000/nos,gpuPartitioner.image.tag=v7,gpuPartitioner.image.digest=$' deployed registry.test:5000/nos:v7

# Every object of a release with the longest name has one of at most 63 characters; shorter names stay whole.
every=(--set telemetry.enabled=true --set autoscaler.enabled=true --set metrics.serviceMonitor.enabled=true
  --set metrics.prometheusRule.enabled=true --set metrics.dashboards.enabled=true --api-versions monitoring.coreos.com/v1/ServiceMonitor)
# release LENGTH: the objects of a release with a name of that length
release() { "$helm" template "$(head -c "$1" /dev/zero | tr '\0' r)" "$work/chart" -n nos-system --kube-version 1.28.0 "${every[@]}"; }
expect 'kind: StatefulSet' release 53
expect_no '^  name: "?[^ "]{64,}' release 53
expect '^  name: r{39}-gpu-partitioner-metrics$' release 39

# A release with a generated name ("nos-" and the time) shares no object with another one but the definitions of kinds,
# and names nothing of the other one: daemons, roles and what they refer to follow the release.
named_objects() { awk '/^kind:/ {kind = $2} /^metadata:/ {on = 1; next} on && /^  name:/ {print kind, $2; on = 0}' | sort -u; }
every+=(--set gpuPartitioner.migAgent.mps.enabled=true)
generated() { "$helm" template "$@" "$work/chart" -n nebuly-nos --kube-version 1.34.0 "${every[@]}"; }
generated nos >"$work/named.yaml" || fail "render"
for name in --generate-name nos-1733024000; do
  generated "$name" >"$work/generated.yaml" || fail "render $name"
  out=$(comm -12 <(named_objects <"$work/named.yaml") <(named_objects <"$work/generated.yaml"))
  [ "$(grep -v '^CustomResourceDefinition ' <<<"$out")" = '' ] || fail "objects of two releases have the same name"
  [ "$(named_objects <"$work/generated.yaml" | wc -l)" = "$(named_objects <"$work/named.yaml" | wc -l)" ] || fail "$name: other objects"
done
# Not so the scheduler's name for pods, and a group of alerts.
expect_no '[nN]ame: "?nos-(gpu-partitioner|mig-agent|mps|scheduler|operator|telemetry|autoscaler|uninstall|metrics|reader)' \
  grep -vE 'schedulerName: nos-scheduler$|^    - name: nos-telemetry$' "$work/generated.yaml"

# The namespace of the agents may be one that nos did not make.
expect 'helm.sh/resource-policy: keep' only agent --set gpuPartitioner.migAgent.namespace=nos-agents
refuse 'wholeOnMigNodes needs devicePlugin.mode builtin' render --set gpuPartitioner.migAgent.hybrid.wholeOnMigNodes=true \
  --set gpuPartitioner.migAgent.devicePlugin.mode=nvidia
refuse 'operator.image.repository: registry.test/nebuly-ai/nos-operator has the name of an image of the Go project' \
  render --set operator.image.repository=registry.test/nebuly-ai/nos-operator

# The driver's library is found below driverRoot in every mode; what other containers get, only where nos gives it.
beside() { only agent --set gpuPartitioner.migAgent.devicePlugin.mode=nvidia "$@"; }
for text in 'driverRoot: /host$' 'driverRootOnHost: /$' 'hostPath: \{path: /, type: Directory\}$' \
  'name: driver-root, mountPath: /host, readOnly: true'; do
  expect "$text" only agent
  expect "$text" beside
  expect_no "$text" beside --set gpuPartitioner.migAgent.driverRoot=
  expect_no "$text" only agent --set gpuPartitioner.migAgent.devicePlugin.handover=environment
done
expect_no 'host-dev|/var/run/cdi' beside
# The driver's programs come by a RuntimeClass.
empty='NOTE gpuPartitioner.migAgent.runtimeClassName is empty'
expect "$empty: mps.enabled runs nvidia-cuda-mps-control, which" only notes --set gpuPartitioner.migAgent.mps.enabled=true
expect "$empty: hybrid.reset=gpu runs nvidia-smi, which" only notes --set gpuPartitioner.migAgent.hybrid.reset=gpu
expect_no "$empty" only notes --set gpuPartitioner.migAgent.hybrid.reset=node
expect_no "$empty" only notes --set gpuPartitioner.migAgent.mps.enabled=true,gpuPartitioner.migAgent.mps.plugin=nebuly
expect_no "$empty" only notes --set gpuPartitioner.migAgent.mps.enabled=true,gpuPartitioner.migAgent.runtimeClassName=nvidia

# The first commands that NOTES shows: two plugins must not offer the same devices, and the GPU Operator has
# labelled its nodes before.
cp -r "$root/deploy/helm/nos" "$work/shown"
mv "$work/shown/templates/NOTES.txt" "$work/shown"
printf 'text: {{ tpl (.Files.Get "NOTES.txt") . | quote }}\n' >"$work/shown/templates/text.yaml"
shown() { "$helm" template nos "$work/shown" -n nos-system --kube-version 1.28.0 -s templates/text.yaml "$@"; }
expect 'label node NODE --overwrite nos.nebuly.com/gpu-partitioning=mig nvidia.com/gpu.deploy.device-plugin=false' shown
expect 'label node NODE --overwrite nos.nebuly.com/gpu-partitioning=mig\\n' shown \
  --set gpuPartitioner.migAgent.devicePlugin.mode=nvidia
expect_no 'label node' shown --set gpuPartitioner.enabled=false
expect 'the image nos:0.1.0, which names no registry: .* set image.repository' shown
expect_no 'names no registry' shown --set image.repository=registry.test/team/nos
expect_no 'names no registry' shown --set image.registry=registry.test
expect 'NOTE No effect: operator.kubeRbacProxy .*ask for a token with the right to read metrics: metrics.secure' \
  only notes -f "$files/go.yaml"

# Pods by requirements get MPS shares without hostIPC if agents and pods share memory by a folder.
sharing() { only operator --set gpuPartitioner.migAgent.mps.enabled=true "$@"; }
folder=gpuPartitioner.migAgent.mps.shmFolder=/run/nos/mps-shm
expect 'sharesNeedHostIPC: false$' sharing --set $folder
expect_no sharesNeedHostIPC sharing
expect_no sharesNeedHostIPC sharing --set $folder,gpuPartitioner.migAgent.mps.plugin=nebuly
expect_no sharesNeedHostIPC only operator --set $folder

# Limits that were chosen stay.
expect 'memory: 256Mi' only scheduler -f "$files/go.yaml" --set scheduler.resources.limits.memory=256Mi
expect 'cpu: 500m' only scheduler -f "$files/go.yaml" --set scheduler.resources.limits.memory=256Mi

# The second agent of the Go project.
agent=gpuPartitioner.gpuAgent
expect 'runtimeClassName: nvidia' only agent --set $agent.runtimeClassName=nvidia
expect 'logLevel: debug' only agent --set $agent.logLevel=1
expect 'key: pool' only agent --set-json "$agent.tolerations=[{\"key\":\"pool\",\"operator\":\"Exists\"}]"
expect 'memory: 300Mi' only agent -f "$files/go.yaml" --set $agent.resources.limits.memory=300Mi
refuse 'gpuAgent.runtimeClassName is a and gpuPartitioner.migAgent.runtimeClassName b' \
  render --set $agent.runtimeClassName=a,gpuPartitioner.migAgent.runtimeClassName=b
refuse 'gpuAgent.resources and gpuPartitioner.migAgent.resources differ' render \
  --set $agent.resources.limits.memory=300Mi,gpuPartitioner.migAgent.resources.limits.memory=200Mi
refuse 'gpuAgent.image: one agent serves' render --set $agent.image.repository=registry.test/other

# The agent's nodes: any of the labels, and all that the values ask for.
expect '^3$' count 'key: zone' only agent --set-json 'gpuPartitioner.migAgent.affinity={"nodeAffinity":
  {"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[
    {"matchExpressions":[{"key":"zone","operator":"Exists"}]}]}}}' --set gpuPartitioner.migAgent.nodeSelector=null
expect 'nos.nebuly.com/gpu-partitioning: other' only agent \
  --set 'gpuPartitioner.migAgent.nodeSelector.nos\.nebuly\.com/gpu-partitioning=other'

# A scheduler configuration as kube-scheduler's.
profile='{"schedulerName":"nos-scheduler","plugins":{"preFilter":{"enabled":[{"name":"CapacityScheduling"}]}}}'
whole="scheduler.config={\"apiVersion\":\"kubescheduler.config.k8s.io/v1beta3\",\"kind\":\"KubeSchedulerConfiguration\",\"profiles\":[$profile]}"
expect 'apiVersion: kubescheduler.config.k8s.io/v1beta3' only scheduler --set-json "$whole"
refuse 'kind' render --set scheduler.config.kind=Pod
refuse 'scheduler.config.extenders; nos scheduler calls no extenders: remove them' render --set-json 'scheduler.config.extenders=[]'
refuse 'value config; the configuration of the scheduler is scheduler.config' render --set config.a=b

# GPU models.
models='catalogue.models=[{"name":"X1","memoryGiB":8,"computeSlices":1,"slots":1,"products":["X1"],
  "profiles":[{"name":"1g.8gb","compute":1,"size":1,"starts":[0],"max":1,"memoryMiB":7000}]}]'
changed=(--set-json "$models" --set-json 'catalogue.remove=[{"model":"B200"}]'
  --set-json 'gpuPartitioner.knownMigGeometries=[{"models":["A30"],"allowedGeometries":[{"1g.6gb":4}]}]')
for part in partitioner-config scheduler operator agent autoscaler telemetry; do
  for text in 'knownMigGeometriesFile: /etc/nos/known' 'name: X1' 'model: B200' '1g.6gb: 4'; do
    expect "$text" only $part --set autoscaler.enabled=true,telemetry.enabled=true "${changed[@]}"
  done
done
expect_no known_mig render

# walk:ai.
expect '^4$' count 'preemptionPolicy: Never' only priority-classes -f "$files/walkai.yaml"
for class in 'nos-priority-low:value: 0' 'nos-priority-medium:value: 1000' 'nos-priority-high:value: 2000' \
  'nos-priority-extra-high:value: 3000'; do
  class_value() { only priority-classes -f "$files/walkai.yaml" | grep -A10 "name: ${class%%:*}$"; }
  expect "${class#*:}" class_value
done
expect '^1$' count 'globalDefault: true' only priority-classes -f "$files/walkai.yaml"
expect_no 'nos-priority|api-client' render -f "$files/walkai.yaml" --set priorityClasses.enabled=false
expect '^4$' count 'kind: PriorityClass' render --set priorityClasses.enabled=true
expect '^4$' count 'PreemptLowerPriority' render --set priorityClasses.enabled=true,priorityClasses.preemptionPolicy=PreemptLowerPriority
expect '^4$' count 'kind: PriorityClass' render --set gpuPartitioner.requeueIntervalSeconds=10
expect 'NOTE No effect: gpuPartitioner.requeueIntervalSeconds' only notes -f "$files/walkai.yaml"
given=(-f "$files/walkai-install.yaml")
refuse 'gpuPartitioner.preemption.enabled: the partitioner evicts no pods. .* priorityClasses.preemptionPolicy' render "${given[@]}"
given+=(--set gpuPartitioner.preemption.enabled=false)
refuse 'clusterInfoExporter.enabled: the telemetry server sends the snapshots: set telemetry.enabled=true' render "${given[@]}"
to=gpuPartitioner.migAgent.telemetry
server=(--set telemetry.enabled=true --set telemetry.certificateSecret=c --set telemetry.tokensSecret=t
  --set "$to.endpoint=https://nos-telemetry.nos-system.svc" --set "$to.cluster=prod")
one=(--set telemetry.enabled=true --set "$to.cluster=prod")
expect 'cluster: prod$' only telemetry "${given[@]}" "${one[@]}"
expect 'url: https://api.example.com/cluster/insights' only telemetry "${given[@]}" "${one[@]}"
given+=("${server[@]}")
exported() { only telemetry "${given[@]}" "$@"; }
for text in 'url: https://api.example.com/cluster/insights' 'intervalSeconds: 3$' 'tokenFile: /etc/nos-export/apiToken' \
  'secretName: cluster-info-exporter-secrets'; do
  expect "$text" exported
done
expect 'intervalSeconds: 120$' exported --set clusterInfoExporter.config.interval=2m
expect 'tokenFile: /etc/nos-export/other' exported --set clusterInfoExporter.secret.key=other
refuse 'interval: 3h is not' exported --set clusterInfoExporter.config.interval=3h
refuse 'clusterInfoExporter.secret is mine and telemetry.exportSecret e' exported \
  --set telemetry.exportSecret=e,clusterInfoExporter.secret.existingSecret=mine
api() { only walkai "${given[@]}" "$@"; }
for text in 'apiToken: "<your-token>"' 'name: api-client$' 'name: api-client-permanent-token' 'name: walkai-api-client-admin' \
  'name: discovery-minimal-for-walkai-api-client' 'resource-policy: keep'; do
  expect "$text" api
done
expect_no 'name: cluster-info-exporter-secrets' api --set clusterInfoExporter.secret.existingSecret=mine
expect_no 'kind: Namespace' api --set clusterInfoExporter.apiClient.createNamespace=false
expect_no 'api-client' api --set clusterInfoExporter.apiClient.enabled=false
expect_no 'api-client' render -f "$files/walkai.yaml"

# Agent and operator get maxSpoolMiB, also from its former name as a value or in a daemon's fields.
telemetry=gpuPartitioner.migAgent.telemetry
spools() {
  render --set $telemetry.endpoint=https://telemetry.test,$telemetry.cluster=prod,operator.telemetry.enabled=true "$@" |
    grep -oE '[a-zA-Z]*[sS]poolMiB: .*|sizeLimit: [0-9]+Mi' | tr '\n' ' '
}
expect '^maxSpoolMiB: 64 maxSpoolMiB: 64 sizeLimit: 80Mi $' spools
expect '^maxSpoolMiB: 100 maxSpoolMiB: 100 sizeLimit: 116Mi $' spools --set $telemetry.spoolMiB=100
expect '^maxSpoolMiB: 200 maxSpoolMiB: 200 sizeLimit: 216Mi $' spools --set $telemetry.spoolMiB=64 --set $telemetry.maxSpoolMiB=200
expect '^maxSpoolMiB: 32 maxSpoolMiB: 64 sizeLimit: 80Mi $' spools --set gpuPartitioner.migAgent.config.telemetry.spoolMiB=32

# Unknown values, with the nearest known one.
hint() { refuse "^unknown value $1; did you mean ${2//./\\.}\?$" render --set "$1=1"; }
hint gpuPartitioner.schedular gpuPartitioner.scheduler
hint gpuPartitoner gpuPartitioner
hint gpuPartitioner.knownGeometries gpuPartitioner.knownMigGeometries
hint gpuPartitioner.handover gpuPartitioner.migAgent.devicePlugin.handover
hint gpuPartitioner.migAgent.mps.enable gpuPartitioner.migAgent.mps.enabled
hint operator.resource operator.resources
hint nos-operator.replicaCounts nos-operator.replicaCount
hint clusterInfoExporter.config.endpiont clusterInfoExporter.config.endpoint
refuse 'unknown value metrics.abc; known there: certificateSecret, dashboards, labels, loopback, prometheusRule, secure, serverName, serviceMonitor' render --set metrics.abc=1
two() { render --set operator.enable=1,telemetry.enable=1 2>&1 | grep -c 'unknown value'; }
expect '^2$' two

# helm upgrade --reuse-values: Helm takes the defaults of the release's chart, which lack newer groups of
# values. The objects are those of the new defaults, except for the hand-over, which had another default.
mv "$work/chart/values.yaml" "$work/values.yaml"
cp "$files/reused.yaml" "$work/chart/values.yaml"
every+=(--set gpuPartitioner.migAgent.devicePlugin.handover=environment)
render "${every[@]}" >"$work/reused.out" || fail "does not render with the values of an earlier release"
expect 'image: "nos:0.1.0"' cat "$work/reused.out"
render --set gpuPartitioner.image.repository=registry.test/mine >"$work/reused-image.out" || fail "render"
expect 'image: "registry.test/mine:0.1.0"' cat "$work/reused-image.out"
mv "$work/values.yaml" "$work/chart/values.yaml"
render "${every[@]}" >"$work/fresh.out" || fail "render"
out=$(diff "$work/fresh.out" <(grep -v "NOTE No effect: shareTelemetry" "$work/reused.out")) || fail "other objects with the values of an earlier release"

# nos reads what the chart writes from these files. The daemons read GPU models before they connect:
# the lists' impossible geometry ends none of them.
begins() { env -u KUBECONFIG HOME="$work" NODE_NAME=node "$@" --config "$work/config.yaml"; }
if [ -n "${2:-}" ]; then
  for name in go go-subcharts walkai; do
    render -f "$files/$name.yaml" >"$work/rendered.yaml" || fail "render $name"
    awk '/^  known_mig_geometries.yaml: \|/ {on = 1; next} on && /^    / {print substr($0, 5); next} on {exit}' \
      "$work/rendered.yaml" >"$work/models.yaml"
    for kind in GpuPartitionerConfig:partitioner MigAgentConfig:agent KubeSchedulerConfiguration:scheduler OperatorConfig:operator; do
      config "$work/rendered.yaml" "${kind%:*}" | sed "s|/etc/nos/known_mig_geometries.yaml|$work/models.yaml|" >"$work/config.yaml"
      expect "kind: ${kind%:*}" begins "$2/nos" "${kind#*:}" --print-config
      [ "${kind#*:}" != operator ] || continue
      refuse 'ignored a geometry that no GPU can have.*3g.20gb' begins "$2/nos" "${kind#*:}"
      expect_no 'no profile .3g.20gb.$' printf '%s' "${out##*$'\n'}"
    done
  done
  config "$work/rendered.yaml" GpuPartitionerConfig | grep -v knownMig >"$work/config.yaml"
  refuse 'scheduler configuration is missing.*/etc/nos-scheduler/scheduler_config.yaml' begins "$2/nos" partitioner
  only telemetry --set telemetry.enabled=true "${changed[@]}" >"$work/rendered.yaml" || fail "render telemetry"
  config "$work/rendered.yaml" TelemetryConfig | sed "s|/etc/nos/known_mig_geometries.yaml|$work/none.yaml|" \
    >"$work/config.yaml"
  expect "knownMigGeometriesFile: .$work/none.yaml" begins "$2/nos" telemetry --print-config
  refuse "$work/none.yaml" begins "$2/nos" telemetry
  only telemetry --set telemetry.enabled=true --set telemetry.cost.currency=EUR \
    --set 'telemetry.cost.prices[0].pricePerGpuHour=2.50' --set 'telemetry.cost.prices[0].model=H100-80GB' \
    --set 'telemetry.cost.prices[0].validFrom=2026-12-01' >"$work/rendered.yaml" || fail "render prices"
  config "$work/rendered.yaml" TelemetryConfig >"$work/config.yaml"
  expect 'pricePerGpuHour: 2.5$' begins "$2/nos" telemetry --print-config
  expect 'validFrom: "2026-12-01"' begins "$2/nos" telemetry --print-config
fi
for wrong in 'prices[0].pricePerGpuHour=-1' 'prices[0].pricePerGpuHour=x' 'prices[0].model=L4' \
  'prices[0].pricePerGpuHour=1,telemetry.cost.prices[0].validFrom=tomorrow' currency=eur; do
  refuse '/telemetry/cost' render --set "telemetry.cost.$wrong"
done
echo ok
