{{- define "nos.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "nos.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "nos.selectorLabels" -}}
app.kubernetes.io/name: {{ include "nos.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "nos.labels" -}}
{{ include "nos.selectorLabels" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end -}}

{{- /* of the agent: what it does not say is the partitioner's */ -}}
{{- define "nos.image" -}}
{{- $image := mergeOverwrite (deepCopy .base) (default dict .image) -}}
{{ $image.repository }}:{{ default .root.Chart.AppVersion $image.tag }}
{{- end -}}

{{- /* older charts gave zap's numbers */ -}}
{{- define "nos.logLevel" -}}
{{- if kindIs "string" . -}}{{ . }}{{- else if gt (int .) 0 -}}debug{{- else -}}info{{- end -}}
{{- end -}}

{{- define "nos.checkNamespace" -}}
{{- if and (eq .Release.Namespace "default") (not .Values.allowDefaultNamespace) -}}
{{- fail "nos is not installed into the namespace default: give --namespace nos-system --create-namespace, or --set allowDefaultNamespace=true" -}}
{{- end -}}
{{- end -}}

{{- /* probes, Service and ServiceMonitor go to the ports of each daemon's defaults */ -}}
{{- define "nos.checkPorts" -}}
{{- if or .config.health .config.metrics -}}
{{- fail (printf "%s must not set health or metrics: the chart's probes and Services go to ports 8081 and 8080" .path) -}}
{{- end -}}
{{- end -}}
