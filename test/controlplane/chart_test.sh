#!/usr/bin/env bash
# Tests the chart and the Kustomize base: they pass helm's own checks, the real API server accepts
# the objects, wrong values are refused, values files of older charts are accepted (values_test.sh
# has what they mean).
#
#   chart_test.sh SCRIPT     with NOS_CONTROLPLANE_DIR
# shellcheck source=test/controlplane/check.sh
. "$(dirname "$0")/check.sh"
deploy=$(cd "$(dirname "$0")/../.." && pwd)/deploy
shared_plane
namespace=chart-$$
trap '"$kubectl" delete namespace "$namespace" --wait=false >/dev/null 2>&1' EXIT
render() { "$helm" template nos "$deploy/helm/nos" -n "$namespace" --kube-version 1.28.0 "$@"; }
# Validates with the API server's schema and admission.
dry_run() { "$kubectl" apply --server-side --dry-run=server --validate=strict -f -; }
accepted() {
  out=$(render "$@" 2>&1 | dry_run 2>&1) || fail "not accepted with: $*"
}

expect created "$kubectl" create namespace "$namespace"
expect '0 chart\(s\) failed' "$helm" lint --strict "$deploy/helm/nos" -n "$namespace"
accepted
accepted --set scheduler.replicaCount=1 --set scheduler.config.leaderElection.resourceName=other \
  --set-json 'scheduler.config.profiles=[{"schedulerName":"a"},{"schedulerName":"default-scheduler"}]'
accepted --set scheduler.enabled=false
accepted --set gpuPartitioner.replicaCount=1 --set gpuPartitioner.migAgent.devicePlugin.mode=nvidia
accepted --set gpuPartitioner.migAgent.devicePlugin.mode=nvidia \
  --set gpuPartitioner.migAgent.devicePlugin.namespace="$namespace"
telemetry=gpuPartitioner.migAgent.telemetry
accepted --set $telemetry.endpoint=https://telemetry.test --set $telemetry.cluster=prod --set $telemetry.tokenSecret=t \
  --set $telemetry.caConfigMap=c --set $telemetry.certificateSecret=s --set $telemetry.processes=true
accepted --set gpuPartitioner.config.objective=compute --set gpuPartitioner.scheduler.config.name=mine \
  --set-json 'gpuPartitioner.knownMigGeometries=[{"models":["A30"],"allowedGeometries":[{"1g.6gb":4}]}]'
accepted --set operator.replicaCount=1 --set operator.leaderElection.enabled=false \
  --set operator.crds.enabled=false --set operator.config.deleteOverlappingElasticQuotas=true
accepted --set operator.webhook.failurePolicy=Fail --set operator.webhook.certificateSecret=mine \
  --set operator.webhook.annotations.cert-manager\\.io/inject-ca-from=nos/mine
accepted --set operator.webhook.enabled=false
accepted --set autoscaler.crds.enabled=true
scaling() { render --set autoscaler.enabled=true "$@"; }
# A dry run creates no namespace for placeholders: use the test's.
accepted --set autoscaler.enabled=true --set autoscaler.crds.enabled=false \
  --set autoscaler.placeholders.namespace="$namespace"
accepted --set autoscaler.enabled=true --set autoscaler.replicaCount=1 --set autoscaler.placeholders.namespace="$namespace" --set autoscaler.leaderElection.enabled=false \
  --set autoscaler.provisioningRequests=true --set autoscaler.webhook.urlPrefix=https://hooks.test/ \
  --set autoscaler.webhook.tokenSecret=t --set autoscaler.webhook.caConfigMap=c --set autoscaler.demandPriority=-5 \
  --set autoscaler.config.moves.enabled=true --set scheduler.enabled=false \
  --set-json 'autoscaler.scaleTargets=[{"apiGroup":"karpenter.sh","resource":"nodepools"}]'
accepted --set operator.enabled=false
accepted --set telemetry.enabled=true --set telemetry.certificateSecret=c --set telemetry.tokensSecret=t \
  --set telemetry.storage.storageClassName=fast --set operator.telemetry.enabled=true \
  --set telemetry.whatIf=true --set telemetry.submit=true --set telemetry.impersonate=true \
  --set telemetry.oidcSecret=o --set telemetry.config.readers.oidc.issuer=https://login.test \
  --set $telemetry.endpoint=https://telemetry.test --set $telemetry.cluster=prod
accepted --set telemetry.enabled=true --set telemetry.certificateSecret=c --set telemetry.tokensSecret=t \
  --set telemetry.exportSecret=e --set telemetry.config.export.remoteWrite.url=https://mimir.test/api/v1/push \
  --set telemetry.config.export.remoteWrite.tokenFile=/etc/nos-export/token
accepted --set metrics.dashboards.enabled=true --set metrics.dashboards.annotations.grafana_folder=GPUs
accepted --set $telemetry.endpoint=https://telemetry.test --set $telemetry.cluster=prod \
  --set operator.telemetry.spoolClaim=spool
spooled() { render -s templates/operator.yaml --set $telemetry.endpoint=https://telemetry.test --set $telemetry.cluster=prod "$@"; }
expect 'emptyDir: ' spooled
expect 'claimName: spool' spooled --set operator.telemetry.spoolClaim=spool
expect 'spoolShared: true' spooled --set operator.telemetry.spoolClaim=spool
expect 'maxSurge: 0' spooled --set operator.telemetry.spoolClaim=spool
# The CRDs, including the CEL rules that this API server version can check.
out=$(render --kube-version 1.34.0 -s templates/crds.yaml | tee "$dir/definitions.yaml" | dry_run 2>&1) || fail "definitions"
grep -q x-kubernetes-validations "$dir/definitions.yaml" || fail "definitions for 1.34 have no rule"
# Values files of the charts that this one replaces; values_test.sh has what they mean.
values=$(dirname "$0")/../data/values
for file in go go-subcharts walkai; do accepted -f "$values/$file.yaml"; done
# The API client of walk:ai gets a namespace, which a dry run does not create: use the test's.
accepted -f "$values/walkai-install.yaml" --set gpuPartitioner.preemption.enabled=false \
  --set clusterInfoExporter.apiClient.namespace="$namespace" --set clusterInfoExporter.apiClient.createNamespace=false \
  --set telemetry.enabled=true --set telemetry.certificateSecret=c --set telemetry.tokensSecret=t \
  --set $telemetry.endpoint=https://telemetry.test --set $telemetry.cluster=prod

refuse 'replicaCounts' render --set gpuPartitioner.replicaCounts=3
refuse 'schedulerName' render --set-json 'scheduler.config.profiles=[{"plugins":{}}]'
refuse 'extenders' render --set-json 'scheduler.config.extenders=[]'
refuse 'needs leader election' render --set scheduler.leaderElection.enabled=false
refuse 'needs leader election' render --set gpuPartitioner.leaderElection.enabled=false
accepted --set scheduler.leaderElection.enabled=false --set scheduler.replicaCount=1
# Without leader election, a new replica must not start before the old one has ended.
expect 'type: Recreate' render --set scheduler.leaderElection.enabled=false \
  --set scheduler.replicaCount=1
expect 'type: Recreate' render --set gpuPartitioner.leaderElection.enabled=false \
  --set gpuPartitioner.replicaCount=1
accepted --set scheduler.config=null
refuse 'needs leader election' render --set operator.leaderElection.enabled=false
bound() { render --set autoscaler.enabled=true --set telemetry.enabled=true "$@" | grep -c 'bindAddress: 127.0.0.1:8080'; }
expect '^6$' bound --set metrics.loopback=true
refuse '^0$' bound
# Liveness does not end a daemon that has work before it answers its probes.
# probes TEMPLATE: prints the kinds of the container's probes, with the fields that give them time.
probes() {
  render -s "templates/$1.yaml" --set autoscaler.enabled=true --set telemetry.enabled=true |
    awk '/(startup|liveness|readiness)Probe:/ {printf "%s ", $1} /failureThreshold|initialDelay/ {printf "%s%s ", $1, $2}'
}
for each in agent operator; do
  expect '^startupProbe: failureThreshold:150 livenessProbe: readinessProbe: $' probes "$each"
done
# These answer at once: the telemetry server also while it replays its journal.
for each in partitioner scheduler autoscaler telemetry; do
  expect '^livenessProbe: initialDelaySeconds:15 readinessProbe: $' probes "$each"
done
# After a removal a Job cleans up, with rights only where the chart does not delete the namespace itself.
hook() { render -s templates/uninstall.yaml --set autoscaler.enabled=true "$@"; }
expect 'args: .uninstall, --namespace, '"$namespace"'.$' hook
expect 'args: .uninstall, --namespace, '"$namespace"', --namespace, held.$' hook \
  --set autoscaler.placeholders.namespace=held --set autoscaler.placeholders.createNamespace=false
refuse 'could not find template' hook --set uninstall.enabled=false
# Metrics need a right, unless they stay within the pod, or the values say otherwise.
secured() { render --set autoscaler.enabled=true --set telemetry.enabled=true "$@" | grep -c 'args: .*--secure-metrics'; }
expect '^5$' secured # not the telemetry server's, which nos check reads
expect '^6$' secured --set metrics.secure=true
expect '^6$' secured --set metrics.secure=true --set metrics.loopback=true
refuse '^0$' secured --set metrics.secure=false
refuse '^0$' secured --set metrics.loopback=true
certified() { render --set autoscaler.enabled=true --set telemetry.enabled=true "$@" | grep -cE 'metrics-cert-file|secretName: cert|mountPath: /etc/nos-metrics'; }
expect '^18$' certified --set metrics.certificateSecret=cert --set metrics.secure=true
refuse '^0$' certified --set metrics.certificateSecret=cert --set metrics.secure=false
reviewing() { render -s templates/metrics-access.yaml "$@"; }
expect 'name: nos-mig-agent' reviewing
expect 'nonResourceURLs: ./metrics.' reviewing
refuse 'could not find template' reviewing --set metrics.secure=false
refuse 'metrics.secure' render --set metrics.secure=maybe
refuse 'needs metrics.loopback=false' render --set metrics.loopback=true --set metrics.serviceMonitor.enabled=true
# Every component counts the memory of whole GPUs alike, whatever the profiles are.
counted() { render -s templates/scheduler.yaml -s templates/operator.yaml "$@" | grep -c "MemoryGB: 40"; }
expect '^2$' counted --set nvidiaGpuResourceMemoryGB=40
expect '^2$' counted --set nvidiaGpuResourceMemoryGB=40 --set scheduler.config=null
expect '^3$' counted --set nvidiaGpuResourceMemoryGB=40 --set-json 'scheduler.config.profiles=[{"schedulerName":"a"},
  {"schedulerName":"b","pluginConfig":[{"name":"CapacityScheduling","args":{"reclaimFromPodsWithoutQuota":false}}]}]'
refuse 'MemoryGB is 40 in operator.config and 32' render --set operator.config.nvidiaGpuResourceMemoryGB=40
refuse 'MemoryGB is 40 in profile a of scheduler.config and 32' render --set-json 'scheduler.config.profiles=[
  {"schedulerName":"a","pluginConfig":[{"name":"CapacityScheduling","args":{"nvidiaGpuResourceMemoryGB":40}}]}]'
# Fields that the Service, the roles and the webhook would not follow.
for field in bindAddress hostName serviceName secretName secretNamespace configurationName slices; do
  refuse "operator.config.webhook must not set $field" render --set operator.config.webhook.$field=x
done
for path in operator gpuPartitioner scheduler; do
  expect 'namespace: leases' render --set $path.config.leaderElection.resourceNamespace=leases \
    -s "templates/${path/gpuPartitioner/partitioner}-rbac.yaml"
done
# The autoscaler is off by default; its CRD is installed with it unless disabled.
expect_no 'nos-autoscaler|nodepools.nos.nebuly.com' render
expect 'name: nodepools.nos.nebuly.com' scaling
expect_no 'name: nodepools.nos.nebuly.com' scaling --set autoscaler.crds.enabled=false
expect 'namespace: leases' scaling --set autoscaler.config.leaderElection.resourceNamespace=leases \
  -s templates/autoscaler-rbac.yaml
rights() { scaling -s templates/autoscaler-rbac.yaml "$@"; }
for part in machinedeployments/scale machinepools/scale 'resources: .machines.' pods/eviction nodepools/status; do
  expect "$part" rights
done
other='autoscaler.scaleTargets=[{"apiGroup":"karpenter.sh","resource":"nodepools"}]'
expect 'nodepools/scale' rights --set-json "$other"
expect_no 'cluster.x-k8s.io|/scale' rights --set-json 'autoscaler.scaleTargets=[]'
expect_no 'machines' rights --set-json "$other"
expect_no 'provisioningrequests|podtemplates' rights
expect 'provisioningrequests' rights --set autoscaler.provisioningRequests=true
expect 'type: Recreate' scaling --set autoscaler.leaderElection.enabled=false --set autoscaler.replicaCount=1
refuse 'needs leader election' scaling --set autoscaler.leaderElection.enabled=false
refuse 'needs autoscaler.webhook.urlPrefix' scaling --set autoscaler.webhook.tokenSecret=t
refuse 'must begin with https://' scaling --set autoscaler.webhook.tokenSecret=t \
  --set autoscaler.webhook.urlPrefix=http://hooks.test/
refuse 'urlPrefix' scaling --set autoscaler.webhook.urlPrefix=https://hooks.test
refuse 'placeholders must not set priorityClass' scaling --set autoscaler.config.placeholders.priorityClass=x
preempting() { scaling -s templates/autoscaler.yaml | grep -c 'preemptionPolicy: Never'; }
expect '^2$' preempting
# The priority class of placeholders is reserved for them, if the API server supports the policy.
reserved() { scaling --kube-version 1.34.0 -s templates/autoscaler-places.yaml; }
expect "request.namespace == 'nos-placeholders'" reserved
expect "request.namespace == 'held'" scaling --kube-version 1.34.0 -s templates/autoscaler-places.yaml \
  --set autoscaler.placeholders.namespace=held
out=$(reserved | dry_run 2>&1) || fail "policy of the placeholders' class"
expect_no 'ValidatingAdmissionPolicy' scaling
# Placeholders have a namespace of their own, restricted and created by default.
placed() { scaling -s templates/autoscaler-rbac.yaml -s templates/autoscaler.yaml "$@"; }
expect 'pod-security.kubernetes.io/enforce: restricted' placed
expect "formerNamespace: $namespace" placed
expect 'hostPorts: false' placed
expect 'verbs: .create, patch, delete.' placed
expect 'hostPorts: true' placed --set autoscaler.placeholders.podSecurity=privileged
expect_no 'kind: Namespace' placed --set autoscaler.placeholders.createNamespace=false
expect_no 'kind: Namespace|former' placed --set autoscaler.placeholders.namespace="$namespace"
refuse 'podSecurity' placed --set autoscaler.placeholders.podSecurity=none
refuse 'placeholders must not set namespace' scaling --set autoscaler.config.placeholders.namespace=x
refuse 'must not set webhook or provisioningRequests' scaling --set autoscaler.config.webhook.tokenFile=x
refuse 'must not set health or metrics' scaling --set autoscaler.config.metrics.bindAddress=0
refuse 'scaleTarget' render --set autoscaler.scaleTarget=x
refuse 'failurePolicy' render --set operator.webhook.failurePolicy=Other
# The webhook that chooses slices by GPU requirements is off by default.
choosing() { render -s templates/operator.yaml -s templates/operator-rbac.yaml "$@"; }
for part in MutatingWebhookConfiguration mutatingwebhookconfigurations 'slices: true'; do
  expect "$part" choosing
  expect_no "$part" choosing --set operator.webhook.slices=false
done
accepted --set operator.webhook.slices=false
for path in operator.config scheduler.daemonConfig gpuPartitioner.config gpuPartitioner.migAgent.config; do
  refuse "$path must not set health or metrics" render --set $path.health.healthProbeBindAddress=:9091
  refuse "$path must not set health or metrics" render --set $path.metrics.bindAddress=0
done
refuse 'telemetry.tokensSecret: gpuPartitioner.migAgent.telemetry.tokenSecret' \
  render --set telemetry.enabled=true --set $telemetry.tokenSecret=reporters
refuse 'no agent may deliver' render --set telemetry.enabled=true --set $telemetry.endpoint=https://other.test \
  --set $telemetry.cluster=prod
# Telemetry by one value: certificate and tokens need no Secret made by hand.
accepted --set telemetry.enabled=true
by_one() { render --set telemetry.enabled=true "$@"; }
counting() { by_one "${@:2}" | grep -cE -- "$1"; }
expect '^2$' counting "endpoint: https://nos-telemetry.$namespace.svc$"
expect '^2$' counting 'serviceAccountToken: \{path: token, audience: nos-telemetry'
expect '^2$' counting 'configMap: \{name: nos-telemetry-ca\}'
expect "serviceAccounts: $namespace/nos-mig-agent,$namespace/nos-operator$" by_one --kube-version 1.29.0
expect "  serviceAccounts: $namespace/nos-operator$" by_one --kube-version 1.30.0
expect "nodeServiceAccounts: $namespace/nos-mig-agent$" by_one --kube-version 1.30.0
expect_no 'secret: .secretName' by_one -s templates/telemetry.yaml -s templates/agent.yaml
expect 'caNamespaces: agents$' by_one --set gpuPartitioner.migAgent.namespace=agents
expect '^2$' counting 'name: nos-telemetry-ca$' --set gpuPartitioner.migAgent.namespace=agents
expect 'cluster: prod$' by_one --set $telemetry.cluster=prod -s templates/agent.yaml
expect_no 'serviceAccountToken' by_one --set $telemetry.endpoint=https://other.test --set $telemetry.cluster=prod \
  --set telemetry.tokensSecret=t -s templates/agent.yaml -s templates/operator.yaml
accepted --set telemetry.enabled=true --set telemetry.ingress.enabled=true --set telemetry.ingress.host=nos.test \
  --set telemetry.ingress.className=nginx --set telemetry.ingress.tlsSecret=t
refuse 'name the host' by_one --set telemetry.ingress.enabled=true
refuse 'name a Gateway' by_one --set telemetry.httpRoute.enabled=true
gateway() { by_one --set telemetry.httpRoute.enabled=true --set 'telemetry.httpRoute.parentRefs[0].name=public' "$@"; }
expect 'gateway.networking.k8s.io/v1alpha3' gateway -s templates/telemetry-routes.yaml
expect "hostname: nos-telemetry.$namespace.svc" gateway --api-versions gateway.networking.k8s.io/v1/BackendTLSPolicy
expect_no 'BackendTLSPolicy' gateway --set telemetry.certificateSecret=c
refuse 'telemetry.cluster: say' render --set $telemetry.endpoint=https://telemetry.test
refuse 'endpoint' render --set $telemetry.endpoint=telemetry.test
refuse 'mode' render --set gpuPartitioner.migAgent.devicePlugin.mode=other
# Shares by memory: checks where the agent runs, and its permissions.
accepted --set gpuPartitioner.migAgent.mps.enabled=true
accepted --set gpuPartitioner.migAgent.mps.enabled=true --set gpuPartitioner.migAgent.nodeSelector.pool=gpu \
  --set gpuPartitioner.migAgent.config.mps.multiUser=true
# With a folder of shared memory neither the agent nor pods use the host's IPC namespace.
shared_folder() {
  render -s templates/agent.yaml --set gpuPartitioner.migAgent.mps.enabled=true \
    --set gpuPartitioner.migAgent.mps.shmFolder=/run/nos/mps-shm
}
expect_no hostIPC shared_folder
for part in 'shmFolder: /run/nos/mps-shm' 'mountPath: /dev/shm' 'path: /run/nos/mps-shm' 'hostPID: true'; do
  expect "$part" shared_folder
done
sharing() { render -s templates/agent.yaml --set gpuPartitioner.migAgent.mps.enabled=true "$@"; }
for part in 'hostIPC: true' 'hostPID: true' '"compute,utility"' 'path: /run/nos/mps' 'memory: 2Gi' '- mps' \
  'enabled: true' 'keeper: /run/nos/mps/keeper.sock' 'type: OnDelete' 'args: .mps, --socket'; do
  expect "$part" sharing
  expect_no "$part" render -s templates/agent.yaml
done
expect_no 'gpu-partitioning: mig' sharing
# A policy for each component, and for nothing else.
accepted --set networkPolicies.enabled=true --set gpuPartitioner.migAgent.mps.enabled=true --set telemetry.enabled=true
policies() { render -s templates/network-policies.yaml --set networkPolicies.enabled=true --set telemetry.enabled=true "$@"; }
for component in gpu-partitioner mig-agent mps scheduler operator autoscaler telemetry; do
  expect "app.kubernetes.io/component: $component" policies --set autoscaler.enabled=true
done
expect 'app.kubernetes.io/name: prometheus' policies
expect_no 'port: metrics' policies --set networkPolicies.metricsFrom=null
# In the agent's pod, as before there was another.
accepted --set gpuPartitioner.migAgent.mps.enabled=true --set gpuPartitioner.migAgent.mps.separate=false
for part in 'hostIPC: true' 'hostPID: true' 'memory: 2Gi'; do
  expect "$part" sharing --set gpuPartitioner.migAgent.mps.separate=false
done
expect_no keeper.sock sharing --set gpuPartitioner.migAgent.mps.separate=false
for key in nos.nebuly.com/gpu-partitioning n8s.nebuly.ai/gpu-partitioning n8s.nebuly.ai/auto-mig-enabled; do
  expect "key: $key" sharing
done
expect 'multiUser: true' sharing --set gpuPartitioner.migAgent.config.mps.multiUser=true
# Which component resets GPUs.
expect 'reset: gpu' sharing --set gpuPartitioner.migAgent.hybrid.reset=gpu
expect_no 'reset:' sharing
accepted --set gpuPartitioner.migAgent.hybrid.reset=node
expect 'wholeOnMigNodes: true' sharing --set gpuPartitioner.migAgent.hybrid.wholeOnMigNodes=true
expect_no wholeOnMigNodes sharing
refuse 'reset' sharing --set gpuPartitioner.migAgent.hybrid.reset=always
refuse 'needs devicePlugin.mode builtin' sharing --set gpuPartitioner.migAgent.devicePlugin.mode=nvidia
# With Nebuly's device plugin the agent needs nothing of the node that MPS daemons need, and rights
# only in the plugin's namespace.
nebuly() { sharing --set gpuPartitioner.migAgent.mps.plugin=nebuly "$@"; }
accepted --set gpuPartitioner.migAgent.mps.enabled=true --set gpuPartitioner.migAgent.mps.plugin=nebuly \
  --set "gpuPartitioner.migAgent.mps.nebuly.configMapNamespace=$namespace"
for part in '- mps' 'plugin: nebuly' 'configMapName: nos-device-plugin-configs' 'namespace: nebuly-nvidia' \
  'resourceNames: .nos-device-plugin-configs' 'path: /var/lib/kubelet/pods'; do
  expect "$part" nebuly
done
for part in hostIPC hostPID compute,utility /run/nos/mps 'memory: 2Gi'; do expect_no "$part" nebuly; done
for part in nebuly-nvidia /var/lib/kubelet/pods; do expect_no "$part" sharing; done
expect 'namespace: gpu-operator' nebuly --set gpuPartitioner.migAgent.mps.nebuly.configMapNamespace=gpu-operator
expect 'mode: nvidia' nebuly --set gpuPartitioner.migAgent.devicePlugin.mode=nvidia
refuse 'plugin' sharing --set gpuPartitioner.migAgent.mps.plugin=other
refuse 'not installed into the namespace default' \
  "$helm" template nos "$deploy/helm/nos" -n default --kube-version 1.28.0
refuse 'incompatible' "$helm" template nos "$deploy/helm/nos" -n "$namespace" --kube-version 1.27.0

# nos accepts the configuration that the chart writes.
if [ -n "${2:-}" ]; then
  for kind in GpuPartitionerConfig:partitioner MigAgentConfig:agent \
    KubeSchedulerConfiguration:scheduler SchedulerConfig:scheduler OperatorConfig:operator \
    AutoscalerConfig:autoscaler; do
    scaling --set autoscaler.provisioningRequests=true --set autoscaler.webhook.urlPrefix=https://hooks.test/ \
      --set autoscaler.webhook.tokenSecret=t --set autoscaler.config.scaleDown.afterSeconds=60 \
      --set gpuPartitioner.config.planTimeoutSeconds=2 --set scheduler.config.podMaxBackoffSeconds=20 \
      --set scheduler.daemonConfig.apiServer.timeoutSeconds=20 \
      --set $telemetry.endpoint=https://telemetry.test --set $telemetry.cluster=prod --set $telemetry.tokenSecret=t \
      --set $telemetry.caConfigMap=c --set $telemetry.certificateSecret=s >"$dir/rendered.yaml" || fail "render"
    awk -v kind="${kind%:*}" '/^  (scheduler_)?config.yaml: \|/ {on = 1; text = ""; next}
      on && /^    / {text = text substr($0, 5) "\n"; next}
      on {if (text ~ "kind: " kind) printf "%s", text; on = 0}
      END {if (on && text ~ "kind: " kind) printf "%s", text}' "$dir/rendered.yaml" >"$dir/config.yaml"
    expect "kind: ${kind%:*}" "$2/nos" "${kind#*:}" --config "$dir/config.yaml" --print-config
  done
fi

expect "" "$(dirname "$controlplane")/render-kustomize" --check
# The overlay chooses the namespace.
mkdir "$dir/overlay-$$" && cp -r "$deploy/kustomize/base" "$dir/overlay-$$/base"
printf 'namespace: elsewhere\nresources: [base]\n' >"$dir/overlay-$$/kustomization.yaml"
out=$("$kubectl" kustomize "$dir/overlay-$$" | grep -c nos-system || true)
rm -r "$dir/overlay-$$"
[ "$out" = 0 ] || fail "an overlay's namespace is not followed in $out places"
for overlay in base nvidia-plugin; do
  out=$("$kubectl" kustomize "$deploy/kustomize/$overlay" | sed "s/nos-system/$namespace/" | dry_run 2>&1) ||
    fail "kustomize $overlay"
done
echo ok
