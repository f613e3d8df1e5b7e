#!/usr/bin/env bash
# Tests what the chart offers for each platform: the values files of deploy/helm/nos/platforms, which
# the real API server takes with its schema and Pod Security; variables, volumes, proxies, mirrors,
# architectures; labels of the Prometheus operator's objects; the dashboard's route; who may read quotas and GPUs.
#
#   platforms_test.sh SCRIPT BUILD     with NOS_CONTROLPLANE_DIR
# shellcheck source=test/controlplane/check.sh
. "$(dirname "$0")/check.sh"
nos=$2/nos
chart=$(cd "$(dirname "$0")/../.." && pwd)/deploy/helm/nos
shared_plane
namespace=platforms-$$
work=$(mktemp -d)
end() {
  "$kubectl" delete clusterrole "$namespace-quotas-view" "$namespace-reader" --ignore-not-found >/dev/null 2>&1
  "$kubectl" delete clusterrolebinding "$namespace-reader" --ignore-not-found >/dev/null 2>&1
  "$kubectl" delete namespace "$namespace" "$namespace-agents" --wait=false >/dev/null 2>&1
  [ -z "${proxy:-}" ] || kill "$proxy"
  rm -rf "$work"
}
trap end EXIT
render() { "$helm" template nos "$chart" -n "$namespace" --kube-version 1.28.0 "$@"; }
only() { render -s "templates/$1.yaml" "${@:2}"; }
count() { "${@:2}" | grep -cE -- "$1"; }
dry_run() { k apply --server-side --dry-run=server --validate=strict -f -; }
# A dry run creates no namespace for the placeholders.
all=(--set autoscaler.enabled=true --set autoscaler.placeholders.namespace="$namespace" --set telemetry.enabled=true --set telemetry.certificateSecret=c
  --set telemetry.tokensSecret=t)
daemons='partitioner scheduler operator autoscaler telemetry agent'
value_of() { case $1 in partitioner) echo gpuPartitioner ;; agent) echo gpuPartitioner.migAgent ;; *) echo "$1" ;; esac }

# The namespace of the release takes unprivileged pods only; agents have their own.
restricted=pod-security.kubernetes.io
expect created k create namespace "$namespace"
expect labeled k label namespace "$namespace" $restricted/{enforce,warn}=restricted
expect created k create namespace "$namespace-agents"
expect labeled k label namespace "$namespace-agents" $restricted/{enforce,warn}=privileged
# platform FILE...: what the values of a platform render, in the namespaces of this test
platform() {
  local file values=()
  for file in "$@"; do values+=(-f "$chart/platforms/$file.yaml"); done
  render "${all[@]}" "${values[@]}" | sed "s/nos-agents/$namespace-agents/; s/namespace: gpu-operator/namespace: $namespace/"
}
accepted_on() { platform "$@" | dry_run; }
for file in "$chart"/platforms/*.yaml; do
  name=$(basename "$file" .yaml)
  expect 'scheduler serverside-applied' accepted_on "$name"
done
# Pod Security: only the agent is privileged, and it warns where it has no namespace of its own.
apart=(--set "gpuPartitioner.migAgent.namespace=$namespace-agents")
safe() { render "${all[@]}" "${apart[@]}" "$@" | dry_run; }
expect_no 'would violate PodSecurity' safe
expect_no 'would violate PodSecurity' safe -f "$chart/platforms/openshift.yaml" "${apart[@]}"
expect_no 'would violate PodSecurity' accepted_on talos
unsafe() { render | dry_run; }
expect 'would violate PodSecurity "restricted:latest".*privileged' unsafe
expect 'pod-security.kubernetes.io/enforce: privileged' only agent "${apart[@]}"
expect_no 'kind: Namespace' only agent "${apart[@]}" --set gpuPartitioner.migAgent.createNamespace=false
expect_no 'kind: Namespace' only agent
expect "^2$" count 'kind: ResourceQuota' only critical-pods "${apart[@]}"
expect "^1$" count 'kind: ResourceQuota' only critical-pods
expect "matchNames: .$namespace-agents" only service-monitor --set metrics.serviceMonitor.enabled=true "${apart[@]}"
refuse 'namespace' render --set gpuPartitioner.migAgent.namespace=Agents
for way in cdi devices; do
  refuse 'driverRoot' render --set gpuPartitioner.migAgent.driverRoot= \
    --set "gpuPartitioner.migAgent.devicePlugin.handover=$way"
done

# OpenShift: no user is fixed, and the agent may use the privileged constraints.
expect_no 'runAsUser: 65532|runAsGroup|fsGroup' platform openshift
expect 'runAsNonRoot: true' platform openshift
expect 'system:openshift:scc:privileged' platform openshift gpu-operator
expect_no 'openshift' render "${all[@]}"
# Folders of the nodes, as the agent reads and mounts them.
for at in 'gpu-operator /' 'gpu-operator-nvidia-plugin /' 'gke /home/kubernetes/bin/nvidia' 'aks /usr/local/nvidia' \
  'talos /usr/local/glibc' 'eks /' 'k3s /' 'kubeadm /'; do
  expect "driverRootOnHost: ${at#* }$" platform "${at% *}"
  expect "hostPath: \{path: ${at#* }, type: Directory\}" platform "${at% *}"
done
expect 'hostPath: \{path: /var/cdi/dynamic' platform talos
expect 'handover: cdi' platform talos
expect 'hostPath: \{path: /var/run/cdi' platform gke
expect 'mode: nvidia' platform gpu-operator-nvidia-plugin
expect 'runtimeClassName: nvidia' platform gpu-operator-nvidia-plugin
expect_no 'kind: DaemonSet|name: nos-gpu-partitioner' platform eks-bottlerocket
# nos takes what each platform's values make of the agent's configuration.
for file in "$chart"/platforms/*.yaml; do
  platform "$(basename "$file" .yaml)" | awk '/^  config.yaml: \|/ {on = 1; text = ""; next}
    on && /^    / {text = text substr($0, 5) "\n"; next}
    on {if (text ~ "kind: MigAgentConfig") printf "%s", text; on = 0}' >"$work/agent.yaml"
  [ -s "$work/agent.yaml" ] || continue
  expect 'kind: MigAgentConfig' env NODE_NAME=n "$nos" agent --config "$work/agent.yaml" --print-config
done

# Variables and volumes, of all daemons and of one.
extra=(--set-json 'extraEnv=[{"name":"ALL","value":"1"}]'
  --set-json 'extraVolumes=[{"name":"all","emptyDir":{}}]'
  --set-json 'extraVolumeMounts=[{"name":"all","mountPath":"/all"}]')
everywhere() { render "${all[@]}" "${extra[@]}"; }
expect '^7$' count 'name: ALL$' everywhere
expect '^6$' count 'mountPath: /all$' everywhere # the clean-up's Job takes variables only
whole() { everywhere | dry_run; }
expect 'serverside-applied' whole
for daemon in $daemons; do
  at=$(value_of "$daemon")
  one() {
    only "$daemon" "${all[@]}" "${extra[@]}" --set-json "$at.extraEnv=[{\"name\":\"ONE\",\"value\":\"1\"}]" \
      --set-json "$at.extraVolumes=[{\"name\":\"one\",\"hostPath\":{\"path\":\"/one\"}}]" \
      --set-json "$at.extraVolumeMounts=[{\"name\":\"one\",\"mountPath\":\"/one\"}]"
  }
  for part in 'name: ONE$' 'name: ALL$' 'mountPath: /one$' 'mountPath: /all$' 'path: /one$'; do expect "$part" one; done
  taken() { one | dry_run; }
  expect 'serverside-applied' taken
done
refuse 'mountPath' render --set-json 'extraVolumeMounts=[{"name":"all"}]'

# A mirror, and secrets to pull from it.
images() { render "${all[@]}" "$@" | grep -E '^ +image:' | sort -u; }
expect '^ +image: "?mirror.test:5000/nos:0.1.0"?$' images --set image.registry=mirror.test:5000
expect '^ +image: "?mirror.test/cache/team/nos:v1"?$' images --set image.registry=mirror.test/cache/ \
  --set image.repository=registry.test:443/team/nos,image.tag=v1
expect '^ +image: "?mirror.test/team/nos:0.1.0"?$' images --set global.imageRegistry=mirror.test,image.repository=team/nos
expect_no 'other.test' images --set global.imageRegistry=other.test,image.registry=mirror.test
expect '^ +image: "?one.test/nos:0.1.0"?$' images --set image.registry=mirror.test,scheduler.image.registry=one.test
pulling() {
  render "${all[@]}" --set-json 'global.imagePullSecrets=["a",{"name":"b"}]' --set-json 'imagePullSecrets=[{"name":"c"}]' \
    --set-json 'gpuPartitioner.imagePullSecrets=[{"name":"b"}]'
}
for secret in a b c; do expect '^7$' count "^ +- name: $secret$" pulling; done
expect '^ +imagePullSecrets: a,b,c$' pulling # of placeholder pods

# Architectures of the image.
expect '^9$' count 'key: kubernetes.io/arch' render "${all[@]}"
# In addition to the user's own terms: in each of them, and in each of the agent's three.
terms='scheduler.affinity={"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[
  {"matchExpressions":[{"key":"zone","operator":"Exists"}]},{"matchExpressions":[{"key":"rack","operator":"Exists"}]}]}}}'
expect '^2$' count 'key: kubernetes.io/arch' only scheduler --set-json "$terms"
expect '^2$' count '^ +- arm64$' only scheduler --set-json "$terms" --set 'image.architectures={arm64}'
expect '^3$' count 'key: kubernetes.io/arch' only agent
expect_no 'kubernetes.io/arch' render "${all[@]}" --set 'image.architectures=null'

# kube-prometheus-stack selects its own objects by the label release.
monitored() { render "${all[@]}" --set metrics.serviceMonitor.enabled=true,metrics.prometheusRule.enabled=true "$@"; }
expect '^7$' count 'release: stack$' monitored --set metrics.labels.release=stack
expect '^6$' count 'release: other$' monitored --set metrics.labels.release=stack,metrics.serviceMonitor.labels.release=other
# The GPU Operator's DCGM exporter has the same series.
expect 'gpuMetrics: true' only agent
expect 'gpuMetrics: false' only agent --api-versions nvidia.com/v1/ClusterPolicy
expect 'gpuMetrics: true' only agent --api-versions nvidia.com/v1/ClusterPolicy --set gpuPartitioner.migAgent.telemetry.gpuMetrics=true
expect 'gpuMetrics: false' platform gpu-operator
# The operator's validator waits for a capacity of nvidia.com/*. In clouds no other plugin gives whole GPUs;
# elsewhere one may.
for name in gpu-operator gke eks aks; do expect 'wholeOnMigNodes: true' platform "$name"; done
for name in gpu-operator-nvidia-plugin k3s talos kubeadm; do expect_no 'wholeOnMigNodes' platform "$name"; done

# A proxy: the variables of the pods, in a real nos. The proxy notes which hosts it is asked for.
given=(--set proxy.httpsProxy=http://127.0.0.1:3128 --set proxy.noProxy='.corp.test\,10.0.0.0/8')
expect_no 'proxy' render "${all[@]}"
expect '^14$' count 'value: http://127.0.0.1:3128$' render "${all[@]}" "${given[@]}"
expect 'value: \$\(KUBERNETES_SERVICE_HOST\),localhost,127.0.0.1,::1,.svc,.cluster.local,dcgm.gpu-operator,.corp.test,10.0.0.0/8' \
  only agent "${given[@]}" --set gpuPartitioner.migAgent.telemetry.dcgmUrl=http://dcgm.gpu-operator:9400/metrics
refuse 'httpsProxy' render --set proxy.httpsProxy=127.0.0.1:3128
cat >"$work/proxy.mjs" <<'J'
import {createServer} from 'node:http';
import {appendFileSync, writeFileSync} from 'node:fs';
const [, , folder] = process.argv;
const server = createServer();
server.on('connect', (request, socket) => {
  appendFileSync(`${folder}/asked`, request.url + '\n');
  socket.end('HTTP/1.1 403 Forbidden\r\n\r\n');
});
server.listen(0, '127.0.0.1', () => writeFileSync(`${folder}/port`, String(server.address().port)));
J
node "$work/proxy.mjs" "$work" &
proxy=$!
within 30 test -s "$work/port"
: >"$work/asked"
mapfile -t variables < <(only operator --set "proxy.httpsProxy=http://127.0.0.1:$(cat "$work/port")" \
  --set proxy.noProxy=.corp.test | awk '/^ +- name: (https|no)_proxy$/ {name = $3; next}
    name {sub("[$][(]KUBERNETES_SERVICE_HOST[)]", "127.0.0.9"); print name "=" $2; name = ""}')
expect '^2$' echo "${#variables[@]}"
through() { env "${variables[@]}" "$nos" top --once --server "$1"; }
refuse 'CONNECT tunnel failed, response 403' through https://telemetry.example.test
for host in nos-telemetry.nos.svc nos-telemetry.corp.test 127.0.0.9; do
  refuse "$host" through "https://$host:1"
done
expect '^telemetry.example.test:443$' cat "$work/asked"

# The Gateway API's own schema, with its CRDs, which stay: removing a kind can block the garbage
# collector, which concurrent tests need.
for kind in httproutes backendtlspolicies; do
  crd=$("$controlplane" crd $kind)
  case $? in
    0) ;;
    77) exit 77 ;;
    *) fail "no CRD of $kind" ;;
  esac
  expect 'serverside-applied' k apply --server-side -f "$crd"
  within 60 k get "$kind.gateway.networking.k8s.io"
done
route() {
  only telemetry-routes --set telemetry.enabled=true --set telemetry.httpRoute.enabled=true \
    --api-versions gateway.networking.k8s.io/v1/BackendTLSPolicy --set 'telemetry.httpRoute.hostnames={nos.example.test}' \
    --set-json 'telemetry.httpRoute.parentRefs=[{"name":"public","namespace":"gateways"}]' | sed "${1:-}"
}
routed() { route "$@" | dry_run; }
expect 'httproute.gateway.networking.k8s.io/nos-telemetry serverside-applied' routed
expect 'backendtlspolicy.gateway.networking.k8s.io/nos-telemetry serverside-applied' routed
refuse 'hosts.*field not declared in schema' routed 's/hostnames:/hosts:/'

# Teams read their quotas by their usual roles, and cannot write them.
"$helm" template "$namespace" "$chart" -n "$namespace" --kube-version 1.28.0 -s templates/quota-roles.yaml >"$work/roles"
expect 'serverside-applied' k apply --server-side -f "$work/roles"
for role in view edit admin; do
  expect created k create rolebinding "$role" -n "$namespace" --clusterrole "$role" --user "$role"
done
# allowed USER VERB RESOURCE [NAMESPACE]: "true" or ""
allowed() {
  k create -f - -o jsonpath='{.status.allowed}' <<EOF
{"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {"user": "$1", "resourceAttributes":
  {"group": "nos.nebuly.com", "verb": "$2", "resource": "$3", "namespace": "${4:-$namespace}"}}}
EOF
}
may() { [ "$(allowed "$@")" = true ]; }
for kind in elasticquotas compositeelasticquotas; do
  for role in view edit admin; do
    # The controller manager adds the rules to the roles.
    within 30 may "$role" list $kind
    for verb in create update patch delete; do may "$role" $verb $kind && fail "$role may $verb $kind"; done
    may "$role" list $kind default && fail "$role may read $kind of another namespace"
  done
done

# Groups of clusterReaders.groups use the terminal on the whole cluster, and write nothing.
readers() { "$helm" template "$namespace" "$chart" -n "$namespace" --kube-version 1.28.0 -s templates/readers.yaml "$@"; }
expect_no 'kind: ClusterRoleBinding' readers
refuse 'did you mean clusterReaders.groups' readers --set 'clusterReaders.group={team}'
# Other tests may have the definitions, too.
"$helm" template "$namespace" "$chart" -n "$namespace" --kube-version 1.34 --set autoscaler.crds.enabled=true \
  -s templates/crds.yaml -s templates/node-pools.yaml |
  k apply --server-side --force-conflicts -f - >/dev/null || fail "the definitions"
within 30 k get elasticquotas,nodepools.nos.nebuly.com -A
readers --set "clusterReaders.groups={$namespace-team,system:serviceaccounts:$namespace}" >"$work/readers"
expect 'clusterrolebinding.*serverside-applied' k apply --server-side -f "$work/readers"
as_team() { k auth can-i "$@" --as someone --as-group "$namespace-team"; }
within 30 as_team list pods -n default
for right in 'get nodes' 'watch pods -A' 'list elasticquotas.nos.nebuly.com -A' 'list nodepools.nos.nebuly.com'; do
  # shellcheck disable=SC2086
  expect '^yes$' as_team $right
done
for right in 'patch nodes' 'create pods -n default' 'delete pods -A' 'list secrets -A' 'list configmaps -A' \
  'get pods --subresource=log -A' 'create elasticquotas.nos.nebuly.com -A'; do
  # shellcheck disable=SC2086
  refuse '^no$' as_team $right
done
expect created from "
apiVersion: v1
kind: Pod
metadata: {name: waits, namespace: $namespace}
spec:
  schedulerName: $namespace
  securityContext: {runAsNonRoot: true, runAsUser: 1000, seccompProfile: {type: RuntimeDefault}}
  containers:
  - name: main
    image: example/any
    securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
    resources: {limits: {nvidia.com/mig-1g.7gb: 1}}
" k create
expect kubeconfig "$controlplane" kubeconfig "$namespace" --namespace "$namespace" --serviceaccount default
reader() { "$nos" "$@" --kubeconfig "$dir/$namespace.kubeconfig"; }
for command in status 'get gpus' 'get nodes' 'get quotas' 'get pools' "explain waits -n $namespace"; do
  # shellcheck disable=SC2086
  expect_no 'forbidden|note: ignoring' reader $command
done
expect "$namespace/waits" reader explain waits -n "$namespace"
expect " waits " reader get pods -n "$namespace"
echo ok
