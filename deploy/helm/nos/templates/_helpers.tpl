{{- define "nos.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "nos.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- /* "-gpu-partitioner-metrics" has 24 characters, and a Service at most 63. */ -}}
{{- .Values.fullnameOverride | trunc 39 | trimSuffix "-" -}}
{{- else -}}
{{- .Release.Name | trunc 39 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- /* the values of a component that may have nameOverride and fullnameOverride */ -}}
{{- define "nos.overrides" -}}
{{- $v := .root.Values -}}
{{- get (dict "gpu-partitioner" $v.gpuPartitioner "scheduler" $v.scheduler "operator" $v.operator) .component | default dict | toJson -}}
{{- end -}}

{{- /* the name of a component's objects */ -}}
{{- define "nos.component" -}}
{{- with (include "nos.overrides" . | fromJson).fullnameOverride -}}
{{- . | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" (include "nos.fullname" .root) .component -}}
{{- end -}}
{{- end -}}

{{- /* the ConfigMap in which the operator lists the namespaces of CompositeElasticQuotas */ -}}
{{- define "nos.compositeNamespaces" -}}
{{- printf "%s-quota-namespaces" (include "nos.fullname" .) -}}
{{- end -}}

{{- /* the namespace of the agents, the only privileged pods */ -}}
{{- define "nos.agentNamespace" -}}
{{- .Values.gpuPartitioner.migAgent.namespace | default .Release.Namespace -}}
{{- end -}}

{{- /* the namespace of placeholders and of pods that show demand */ -}}
{{- define "nos.placeholderNamespace" -}}
{{- (.Values.autoscaler.placeholders | default dict).namespace | default (printf "%s-placeholders" (include "nos.fullname" .)) -}}
{{- end -}}

{{- define "nos.selectorLabels" -}}
app.kubernetes.io/name: {{ default (include "nos.name" .root) (include "nos.overrides" . | fromJson).nameOverride | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "nos.labels" -}}
{{ include "nos.selectorLabels" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end -}}

{{- /* A digest is that of the base's repository and tag. */ -}}
{{- define "nos.mergeImages" -}}
{{- $base := deepCopy (default dict .base) -}}
{{- $image := default dict .image -}}
{{- if or $image.repository $image.tag -}}{{- $_ := unset $base "digest" -}}{{- end -}}
{{- mergeOverwrite $base $image | toJson -}}
{{- end -}}

{{- /* the image; fields left out default to the base image's (the partitioner's). A registry replaces the repository's own. */ -}}
{{- define "nos.image" -}}
{{- $image := include "nos.mergeImages" . | fromJson -}}
{{- $repository := toString $image.repository -}}
{{- if not $image.repository -}}
{{- fail "image.repository: name the image, such as HOST/OWNER/nos" -}}
{{- else if regexMatch "@|:[^/]*$" $repository -}}
{{- fail (printf "image.repository: %s has a tag or a digest in it: set image.tag or image.digest" $repository) -}}
{{- else if regexMatch "[:@/]" (toString ($image.tag | default "")) -}}
{{- fail (printf "image.tag: %s is no tag; a digest is image.digest" $image.tag) -}}
{{- else if and $image.digest (not (regexMatch "^sha256:[0-9a-f]{64}$" (toString $image.digest))) -}}
{{- fail (printf "image.digest: %s is not sha256: and 64 hexadecimal digits" $image.digest) -}}
{{- end -}}
{{- with coalesce $image.registry (.root.Values.global | default dict).imageRegistry -}}
{{- $parts := splitList "/" $repository -}}
{{- if and (gt (len $parts) 1) (regexMatch "[.:]|^localhost$" (first $parts)) -}}
{{- $parts = rest $parts -}}
{{- end -}}
{{- $repository = printf "%s/%s" (trimSuffix "/" .) (join "/" $parts) -}}
{{- end -}}
{{ $repository }}{{ if $image.digest }}@{{ $image.digest }}{{ else }}:{{ default .root.Chart.AppVersion $image.tag }}{{ end }}
{{- end -}}

{{- /* older charts used zap's numeric levels */ -}}
{{- define "nos.logLevel" -}}
{{- if kindIs "string" . -}}{{ . }}{{- else if gt (int .) 0 -}}debug{{- else -}}info{{- end -}}
{{- end -}}

{{- define "nos.checkNamespace" -}}
{{- if and (eq .Release.Namespace "default") (not .Values.allowDefaultNamespace) -}}
{{- fail "nos is not installed into the namespace default: give --namespace nos-system --create-namespace, or --set allowDefaultNamespace=true" -}}
{{- end -}}
{{- end -}}

{{- /* probes, Service and ServiceMonitor use the default ports of each daemon */ -}}
{{- define "nos.checkPorts" -}}
{{- if or .config.health .config.metrics -}}
{{- fail (printf "%s must not set health or metrics: the chart's probes and Services go to ports 8081 and 8080" .path) -}}
{{- end -}}
{{- end -}}

{{- /* where a daemon serves /metrics */ -}}
{{- define "nos.metricsAddress" -}}
{{- if .root.Values.metrics.loopback -}}
{{- $_ := set .config "metrics" (dict "bindAddress" "127.0.0.1:8080") -}}
{{- end -}}
{{- end -}}

{{- /* "true" if metrics are served over TLS to accounts with the right */ -}}
{{- define "nos.secureMetrics" -}}
{{- $secure := toString .Values.metrics.secure -}}
{{- if or (eq $secure "true") (and (ne $secure "false") (not .Values.metrics.loopback)) -}}true{{- end -}}
{{- end -}}

{{- /* further arguments of a daemon, as the rest of a YAML list */ -}}
{{- define "nos.metricsArgs" -}}
{{- if include "nos.secureMetrics" . }}, --secure-metrics
{{- if .Values.metrics.certificateSecret }}, --metrics-cert-file, /etc/nos-metrics/tls.crt, --metrics-key-file, /etc/nos-metrics/tls.key
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* every component must count the memory of whole GPUs alike for quotas */ -}}
{{- define "nos.checkGpuMemory" -}}
{{- if and (hasKey .from "nvidiaGpuResourceMemoryGB") (ne (int64 .from.nvidiaGpuResourceMemoryGB) (int64 .gb)) -}}
{{- fail (printf "nvidiaGpuResourceMemoryGB is %d in %s and %d in the chart's values: set it in the values alone" (int64 .from.nvidiaGpuResourceMemoryGB) .path (int64 .gb)) -}}
{{- end -}}
{{- end -}}

{{- /* writes nvidiaGpuResourceMemoryGB into a profile of the scheduler */ -}}
{{- define "nos.countWholeGpus" -}}
{{- $quotas := dict -}}
{{- range .profile.pluginConfig -}}
{{- if eq (toString .name) "CapacityScheduling" -}}
{{- $quotas = . -}}
{{- end -}}
{{- end -}}
{{- if not $quotas -}}
{{- $_ := set $quotas "name" "CapacityScheduling" -}}
{{- $_ := set .profile "pluginConfig" (append (default list .profile.pluginConfig) $quotas) -}}
{{- end -}}
{{- $args := default dict $quotas.args -}}
{{- include "nos.checkGpuMemory" (dict "from" $args "path" (printf "profile %s of scheduler.config" .profile.schedulerName) "gb" .gb) -}}
{{- $_ := set $args "nvidiaGpuResourceMemoryGB" .gb -}}
{{- $_ := set $quotas "args" $args -}}
{{- end -}}

{{- /* the chart's Service, roles and webhook use the names that the chart sets itself */ -}}
{{- define "nos.checkWebhook" -}}
{{- range $field := list "bindAddress" "tlsCertFile" "tlsKeyFile" "hostName" "serviceName" "secretName" "secretNamespace" "configurationName" "slices" -}}
{{- if hasKey $.config $field -}}
{{- fail (printf "operator.config.webhook must not set %s: the chart's Service, roles and webhook go by what it writes there itself" $field) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* the chart's roles and volumes use the values that the chart sets itself */ -}}
{{- define "nos.checkAutoscaler" -}}
{{- range $field := list "namespace" "formerNamespace" "hostPorts" "priorityClass" "demandPriorityClass" -}}
{{- if dig "placeholders" $field "" $.config -}}
{{- fail (printf "autoscaler.config.placeholders must not set %s: the chart's roles and classes go by what it writes there itself" $field) -}}
{{- end -}}
{{- end -}}
{{- if or $.config.webhook (hasKey $.config "provisioningRequests") -}}
{{- fail "autoscaler.config must not set webhook or provisioningRequests: autoscaler.webhook and autoscaler.provisioningRequests also give what they need" -}}
{{- end -}}
{{- if and $.webhook.tokenSecret (not $.webhook.urlPrefix) -}}
{{- fail "autoscaler.webhook.tokenSecret needs autoscaler.webhook.urlPrefix: any account that may write NodePools could have the token sent elsewhere" -}}
{{- end -}}
{{- if and $.webhook.tokenSecret (hasPrefix "http://" $.webhook.urlPrefix) -}}
{{- fail "autoscaler.webhook.urlPrefix must begin with https:// where there is a tokenSecret" -}}
{{- end -}}
{{- end -}}

{{- /* the volume with the configuration of the scheduler whose decisions are simulated */ -}}
{{- define "nos.schedulerVolume" -}}
{{- $own := include "nos.component" (dict "root" . "component" "scheduler") -}}
- name: scheduler
{{- with .Values.gpuPartitioner.scheduler.config.name }}
  # The last one of files with the same name counts.
  projected:
    sources:
      {{- if $.Values.scheduler.enabled }}
      - configMap: {name: {{ $own }}, optional: true}
      {{- end }}
      - configMap: {name: {{ . }}, optional: true}
{{- else }}
  configMap: {name: {{ $own }}, optional: true}
{{- end }}
{{- end -}}

{{- /* `affinity`, restricted to nodes with at least one of the labels: its own terms must hold too */ -}}
{{- define "nos.onNodes" -}}
{{- $here := "requiredDuringSchedulingIgnoredDuringExecution" -}}
{{- $theirs := dig "nodeAffinity" $here "nodeSelectorTerms" (list dict) .affinity -}}
{{- $terms := list -}}
{{- range $label := .labels -}}
{{- range $theirs -}}
{{- $terms = append $terms (merge (dict "matchExpressions" (prepend (default list .matchExpressions) $label)) (omit . "matchExpressions")) -}}
{{- end -}}
{{- end -}}
{{- mergeOverwrite (deepCopy .affinity) (dict "nodeAffinity" (dict $here (dict "nodeSelectorTerms" $terms))) | toYaml -}}
{{- end -}}
