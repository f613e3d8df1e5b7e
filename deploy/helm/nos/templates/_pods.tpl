{{- /* What the pods of all daemons have in common. Values of older releases lack some of the fields. */ -}}

{{- /* the entries of extraEnv, extraVolumes or extraVolumeMounts: the certificate of metrics, those of all daemons, and of this one */ -}}
{{- define "nos.extra" -}}
{{- $own := list -}}
{{- if and .root.Values.metrics.certificateSecret (include "nos.secureMetrics" .root) -}}
{{- if eq .list "extraVolumes" -}}
{{- $own = list (dict "name" "metrics-certificate" "secret" (dict "secretName" .root.Values.metrics.certificateSecret)) -}}
{{- else if eq .list "extraVolumeMounts" -}}
{{- $own = list (dict "name" "metrics-certificate" "mountPath" "/etc/nos-metrics" "readOnly" true) -}}
{{- end -}}
{{- end -}}
{{- concat $own (index .root.Values .list | default list) (index .of .list | default list) | toJson -}}
{{- end -}}

{{- /* Names of global.imagePullSecrets may be plain strings. */ -}}
{{- define "nos.pullSecrets" -}}
{{- $secrets := list -}}
{{- range concat ((.Values.global | default dict).imagePullSecrets | default list) (.Values.imagePullSecrets | default list) (.Values.gpuPartitioner.imagePullSecrets | default list) -}}
{{- $secrets = append $secrets (kindIs "string" . | ternary (dict "name" .) .) -}}
{{- end -}}
{{- $secrets | uniq | toJson -}}
{{- end -}}

{{- /*
Environment variables: the proxy, and extraEnv. libcurl, which makes all requests of nos, reads
http_proxy in small letters only. The kubelet replaces $(KUBERNETES_SERVICE_HOST) by the address of
the API server.
*/ -}}
{{- define "nos.env" -}}
{{- $env := list -}}
{{- $proxy := .root.Values.proxy | default dict -}}
{{- if or $proxy.httpProxy $proxy.httpsProxy -}}
{{- $none := list "$(KUBERNETES_SERVICE_HOST)" "localhost" "127.0.0.1" "::1" ".svc" ".cluster.local" -}}
{{- with .root.Values.gpuPartitioner.migAgent.telemetry.dcgmUrl -}}
{{- $none = append $none (regexReplaceAll ":[0-9]+$" (urlParse .).host "") -}}
{{- end -}}
{{- with $proxy.noProxy -}}{{- $none = append $none . -}}{{- end -}}
{{- range $name, $value := dict "http_proxy" $proxy.httpProxy "https_proxy" $proxy.httpsProxy "no_proxy" (join "," $none) -}}
{{- if $value -}}
{{- $env = concat $env (list (dict "name" $name "value" $value) (dict "name" (upper $name) "value" $value)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- concat $env (include "nos.extra" (dict "root" .root "of" .of "list" "extraEnv") | fromJsonArray) | toJson -}}
{{- end -}}

{{- /* `affinity`, restricted to Linux nodes of the image's architectures */ -}}
{{- define "nos.affinity" -}}
{{- $affinity := .affinity | default dict -}}
{{- with .root.Values.image.architectures -}}
{{- range $key, $values := dict "kubernetes.io/os" (list "linux") "kubernetes.io/arch" . -}}
{{- $affinity = include "nos.onNodes" (dict "labels" (list (dict "key" $key "operator" "In" "values" $values)) "affinity" $affinity) | fromYaml -}}
{{- end -}}
{{- end -}}
{{- toYaml $affinity -}}
{{- end -}}

{{- /*
The probes of a daemon that has work before it answers them: the agent initializes the driver, which takes seconds for
each GPU, and the operator reads its undelivered records. Until the first answer the kubelet waits 5 minutes, then it
ends the container; liveness counts afterwards.
*/ -}}
{{- define "nos.slowStartProbes" -}}
startupProbe:
  httpGet: {path: /healthz, port: health}
  periodSeconds: 2
  failureThreshold: 150
livenessProbe:
  httpGet: {path: /healthz, port: health}
  periodSeconds: 20
readinessProbe:
  httpGet: {path: /readyz, port: health}
  periodSeconds: 5
{{- end -}}
