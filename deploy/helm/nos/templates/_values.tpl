{{- /*
Every template starts with this. It checks the values, and brings them into one form: values of
earlier charts (the Go project's, walk:ai's) move to where this chart has them. Afterwards
.Values.prepared has
  notes      lines of NOTES.txt about values that were replaced or have no effect
  catalogue  the content of the file of GPU models; empty: none
The values of a chart are one object for all its templates; the first template changes it.
*/ -}}
{{- define "nos.prepare" -}}
{{- if not (hasKey .Values "prepared") -}}
{{- include "nos.checkKnown" . -}}
{{- $known := .Files.Get "files/known-values.yaml" | fromYaml -}}
{{- include "nos.fillGroups" (dict "values" .Values "defaults" (.Files.Get "files/default-values.yaml" | fromYaml) "known" $known "root" $known) -}}
{{- $_ := set .Values "prepared" (dict "notes" list "catalogue" dict) -}}
{{- include "nos.takeSubcharts" . -}}
{{- $v := .Values -}}
{{- $p := $v.gpuPartitioner -}}
{{- $_ := set $v "nvidiaGpuResourceMemoryGB" (int64 $v.nvidiaGpuResourceMemoryGB) -}}
{{- /* Before the images are replaced: walk:ai's show that the values are its. */ -}}
{{- include "nos.takePriorityClasses" . -}}
{{- include "nos.takeImages" . -}}
{{- include "nos.takeGpuAgent" . -}}
{{- include "nos.noteDriverPrograms" . -}}
{{- include "nos.takeResources" . -}}
{{- include "nos.takeSchedulerConfig" . -}}
{{- include "nos.takeTelemetry" . -}}
{{- include "nos.takeExporter" . -}}
{{- include "nos.chooseGpuMetrics" . -}}
{{- include "nos.withoutEffect" . -}}
{{- $catalogue := dict -}}
{{- range $part := list "models" "notPartitionable" "remove" -}}
{{- with index ($v.catalogue | default dict) $part -}}{{- $_ := set $catalogue $part . -}}{{- end -}}
{{- end -}}
{{- with $p.knownMigGeometries -}}{{- $_ := set $catalogue "knownMigGeometries" . -}}{{- end -}}
{{- $_ := set $v.prepared "catalogue" $catalogue -}}
{{- end -}}
{{- end -}}

{{- /*
With --reuse-values, Helm takes the defaults of the release's chart. Groups of values that a later
chart has added get their defaults here, so that templates may read below them. Single values do not:
null may mean that the user removed one.
*/ -}}
{{- define "nos.fillGroups" -}}
{{- range $name, $default := .defaults -}}
{{- $known := index $.known $name -}}
{{- if kindIs "string" $known -}}
{{- $known = index $.root (trimPrefix "=" $known) -}}
{{- end -}}
{{- if and (kindIs "map" $default) (kindIs "map" $known) -}}
{{- if kindIs "map" (index $.values $name) -}}
{{- include "nos.fillGroups" (dict "values" (index $.values $name) "defaults" $default "known" $known "root" $.root) -}}
{{- else -}}
{{- $_ := set $.values $name $default -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "nos.note" -}}
{{- $_ := set .root.Values.prepared "notes" (append .root.Values.prepared.notes .text) -}}
{{- end -}}

{{- /* the sub-charts of the Go project's chart before 0.1.1 */ -}}
{{- define "nos.takeSubcharts" -}}
{{- $v := .Values -}}
{{- range $old, $now := dict "nos-operator" "operator" "nos-scheduler" "scheduler" "nos-gpu-partitioner" "gpuPartitioner" -}}
{{- with index $v $old -}}
{{- $_ := set $v $now (mergeOverwrite (index $v $now) (deepCopy .)) -}}
{{- include "nos.note" (dict "root" $ "text" (printf "%s is %s now; its values were taken from there." $old $now)) -}}
{{- end -}}
{{- end -}}
{{- with ($v.global | default dict).nvidiaGpuResourceMemoryGB -}}
{{- $_ := set $v "nvidiaGpuResourceMemoryGB" . -}}
{{- end -}}
{{- end -}}

{{- /* "1" if the values are those of walk:ai's chart */ -}}
{{- define "nos.ofWalkai" -}}
{{- $p := .Values.gpuPartitioner -}}
{{- if or .Values.clusterInfoExporter (hasKey $p "requeueIntervalSeconds") (hasKey $p "preemption") -}}1
{{- else if regexMatch "^ghcr.io/(walkai-org|saguirregaray1)/" (toString $p.image.repository) -}}1
{{- else if regexMatch "^ghcr.io/(walkai-org|saguirregaray1)/" (toString $p.migAgent.image.repository) -}}1
{{- end -}}
{{- end -}}

{{- /* walk:ai's API names these classes in each Job */ -}}
{{- define "nos.takePriorityClasses" -}}
{{- /* With --reuse-values, defaults of new values are missing. */ -}}
{{- $classes := .Values.priorityClasses | default dict -}}
{{- $_ := set .Values "priorityClasses" $classes -}}
{{- if not (kindIs "bool" $classes.enabled) -}}
{{- $_ := set $classes "enabled" (ne (include "nos.ofWalkai" .) "") -}}
{{- end -}}
{{- if dig "preemption" "enabled" false .Values.gpuPartitioner -}}
{{- fail "gpuPartitioner.preemption.enabled: the partitioner evicts no pods. The scheduler does, for pods with schedulerName nos-scheduler: leave the value out, and set priorityClasses.preemptionPolicy=PreemptLowerPriority (docs/coming-from-walkai.md)" -}}
{{- end -}}
{{- end -}}

{{- /* Images of the earlier projects understand other arguments. */ -}}
{{- define "nos.takeImages" -}}
{{- $v := .Values -}}
{{- $p := $v.gpuPartitioner -}}
{{- $replaced := list -}}
{{- $own := list -}}
{{- range $path, $image := dict "gpuPartitioner" $p.image "gpuPartitioner.migAgent" $p.migAgent.image "gpuPartitioner.gpuAgent" ($p.gpuAgent | default dict).image "scheduler" $v.scheduler.image "operator" $v.operator.image "telemetry" $v.telemetry.image "autoscaler" $v.autoscaler.image -}}
{{- $repository := toString ($image | default dict).repository -}}
{{- if regexMatch "^ghcr.io/(nebuly-ai|walkai-org|saguirregaray1)/" $repository -}}
{{- $replaced = append $replaced (print $path ".image") -}}
{{- $_ := unset $image "repository" -}}
{{- $_ := unset $image "tag" -}}
{{- else if regexMatch "(^|/)nos-(operator|scheduler|gpu-partitioner|mig-agent|gpu-agent)$" $repository -}}
{{- fail (printf "%s.image.repository: %s has the name of an image of the Go project, which this chart cannot start: name this project's image in your registry, or leave the value out" $path $repository) -}}
{{- else if and (not ($image | default dict).repository) ($image | default dict).tag (ne $path "gpuPartitioner") -}}
{{- $own = append $own (printf "%s.image.tag (%s)" $path $image.tag) -}}
{{- end -}}
{{- end -}}
{{- $_ := set $p "image" (include "nos.mergeImages" (dict "base" $v.image "image" $p.image) | fromJson) -}}
{{- with $own -}}
{{- include "nos.note" (dict "root" $ "text" (printf "%s: this daemon runs another version than the rest, whose tag is %s. Is it a tag of an earlier project's image? Then leave it out." (join ", " .) (toString (default $.Chart.AppVersion $p.image.tag)))) -}}
{{- end -}}
{{- with $replaced -}}
{{- include "nos.note" (dict "root" $ "text" (printf "%s name images of an earlier project; %s runs instead." (join ", " .) (include "nos.image" (dict "root" $ "base" $p.image "image" dict)))) -}}
{{- end -}}
{{- end -}}

{{- /* One agent serves nodes of all modes; a value of the Go project's second agent is used unless the first has another. */ -}}
{{- define "nos.takeGpuAgent" -}}
{{- $a := .Values.gpuPartitioner.migAgent -}}
{{- with .Values.gpuPartitioner.gpuAgent -}}
{{- if ((.image | default dict).repository) -}}
{{- fail "gpuPartitioner.gpuAgent.image: one agent serves nodes of all modes: set gpuPartitioner.migAgent.image" -}}
{{- end -}}
{{- $shipped := dict "limits" (dict "cpu" "100m" "memory" "128Mi") -}}
{{- $defaults := dict "runtimeClassName" (list "") "reportConfigIntervalSeconds" (list "10") "logLevel" (list "0" "info") -}}
{{- range $field, $unset := $defaults -}}
{{- $new := index $.Values.gpuPartitioner.gpuAgent $field -}}
{{- $old := index $a $field -}}
{{- if not (or (kindIs "invalid" $new) (has (toString $new) $unset)) -}}
{{- if or (kindIs "invalid" $old) (has (toString $old) $unset) -}}
{{- $_ := set $a $field $new -}}
{{- else if ne (toString $old) (toString $new) -}}
{{- fail (printf "gpuPartitioner.gpuAgent.%s is %v and gpuPartitioner.migAgent.%s %v: one agent serves nodes of all modes, set the second alone" $field $new $field $old) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and .resources (ne (toJson .resources) (toJson $shipped)) -}}
{{- $mine := $a.resources -}}
{{- if eq (toString $mine.limits.memory) "128Mi" -}}
{{- $_ := set $a "resources" (mergeOverwrite (omit $mine "limits") (deepCopy .resources)) -}}
{{- else if ne (toJson .resources.limits) (toJson $mine.limits) -}}
{{- fail "gpuPartitioner.gpuAgent.resources and gpuPartitioner.migAgent.resources differ: one agent serves nodes of all modes, set the second alone" -}}
{{- end -}}
{{- end -}}
{{- $_ := set $a "tolerations" (concat (default list $a.tolerations) (default list .tolerations) | uniq) -}}
{{- if not ($a.mps | default dict).enabled -}}
{{- include "nos.note" (dict "root" $ "text" "gpuPartitioner.gpuAgent: nodes labelled nos.nebuly.com/gpu-partitioning=mps are served with gpuPartitioner.migAgent.mps.enabled=true.") -}}
{{- end -}}
{{- end -}}
{{- $gpus := dict "key" "nvidia.com/gpu" "operator" "Exists" "effect" "NoSchedule" -}}
{{- $_ := set $a "tolerations" (prepend (without (default list $a.tolerations) $gpus) $gpus) -}}
{{- end -}}

{{- /* nos runs these programs in the agent's container; NVIDIA's container runtime puts them there. */ -}}
{{- define "nos.noteDriverPrograms" -}}
{{- $a := .Values.gpuPartitioner.migAgent -}}
{{- $m := $a.mps | default dict -}}
{{- $needs := list -}}
{{- if and $m.enabled (ne (default "builtin" $m.plugin) "nebuly") -}}{{- $needs = append $needs "mps.enabled runs nvidia-cuda-mps-control" -}}{{- end -}}
{{- if eq (toString ($a.hybrid | default dict).reset) "gpu" -}}{{- $needs = append $needs "hybrid.reset=gpu runs nvidia-smi" -}}{{- end -}}
{{- if and $needs .Values.gpuPartitioner.enabled (not $a.runtimeClassName) -}}
{{- include "nos.note" (dict "root" . "text" (printf "gpuPartitioner.migAgent.runtimeClassName is empty: %s, which the agent's container has only where NVIDIA's container runtime is the node's default. With the GPU Operator set it to nvidia." (join ", and " $needs))) -}}
{{- end -}}
{{- end -}}

{{- /* The Go project's limits are too small for the caches of a large cluster. */ -}}
{{- define "nos.takeResources" -}}
{{- $v := .Values -}}
{{- $replaced := list -}}
{{- range $path, $holds := dict "operator" "1Gi" "scheduler" "2Gi" "gpuPartitioner" "512Mi" -}}
{{- $of := index $v $path -}}
{{- $limits := $of.resources.limits | default dict -}}
{{- if eq (toString $limits.memory) "128Mi" -}}
{{- $replaced = append $replaced (printf "%s.resources.limits (%s)" $path $holds) -}}
{{- $_ := set $of "resources" (mergeOverwrite (deepCopy $of.resources) (dict "limits" (dict "memory" $holds))) -}}
{{- if eq (toString $limits.cpu) "500m" -}}
{{- $_ := unset $of.resources.limits "cpu" -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $agent := $v.gpuPartitioner.migAgent -}}
{{- if eq (toString ($agent.resources.limits | default dict).cpu) "100m" -}}
{{- $_ := set $agent "resources" (deepCopy $agent.resources) -}}
{{- $_ := unset $agent.resources.limits "cpu" -}}
{{- include "nos.note" (dict "root" $ "text" "gpuPartitioner.migAgent.resources.limits.cpu: 100m slows down the partitioning of a GPU; removed.") -}}
{{- end -}}
{{- with $replaced -}}
{{- include "nos.note" (dict "root" $ "text" (printf "Limits of 128Mi of memory, and of CPU beside them, do not hold in a large cluster; replaced: %s." (join ", " .))) -}}
{{- end -}}
{{- end -}}

{{- define "nos.takeSchedulerConfig" -}}
{{- with .Values.gpuPartitioner.scheduler.config.name -}}
{{- $otherwise := ternary "scheduler.config" "kube-scheduler's defaults" $.Values.scheduler.enabled -}}
{{- include "nos.note" (dict "root" $ "text" (printf "gpuPartitioner.scheduler.config.name: GPUs are planned with the profiles of ConfigMap %s; while there is none, with %s." . $otherwise)) -}}
{{- end -}}
{{- end -}}

{{- /*
With a telemetry server of this release and no other address, agents and operator report to it:
.Values.prepared.reportsHere. Without Secrets they are known by tokens of their ServiceAccounts, and
know the server by the authority that it publishes itself.
*/ -}}
{{- define "nos.takeTelemetry" -}}
{{- $v := .Values -}}
{{- $to := $v.gpuPartitioner.migAgent.telemetry -}}
{{- $name := include "nos.component" (dict "root" . "component" "telemetry") -}}
{{- $here := printf "https://%s.%s.svc" $name .Release.Namespace -}}
{{- $_ := set $v.prepared "reportsHere" (and $v.telemetry.enabled (or (not $to.endpoint) (eq $to.endpoint $here))) -}}
{{- if $v.prepared.reportsHere -}}
{{- $_ := set $to "endpoint" $here -}}
{{- $_ := set $to "cluster" ($to.cluster | default "default") -}}
{{- $_ := set $to "accountToken" (not $to.tokenSecret) -}}
{{- if not (or $v.telemetry.certificateSecret $to.caConfigMap) -}}
{{- $_ := set $to "caConfigMap" (print $name "-ca") -}}
{{- end -}}
{{- end -}}
{{- /* maxSpoolMiB was spoolMiB; --reuse-values keeps its default, 64 */ -}}
{{- with $to.spoolMiB -}}
{{- if or (not $to.maxSpoolMiB) (eq (int $to.maxSpoolMiB) 64) -}}{{- $_ := set $to "maxSpoolMiB" . -}}{{- end -}}
{{- end -}}
{{- range list $v.gpuPartitioner.migAgent.config $v.operator.config -}}
{{- with (. | default dict).telemetry -}}
{{- if hasKey . "spoolMiB" -}}{{- $_ := set . "maxSpoolMiB" (.maxSpoolMiB | default .spoolMiB) -}}{{- $_ := unset . "spoolMiB" -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* walk:ai's exporter: the telemetry server exports what it sent */ -}}
{{- define "nos.takeExporter" -}}
{{- $v := .Values -}}
{{- $t := $v.telemetry -}}
{{- $e := $v.clusterInfoExporter | default dict -}}
{{- if $e.enabled -}}
{{- $from := $e.config | default dict -}}
{{- $secret := $e.secret | default dict -}}
{{- if not $from.endpoint -}}
{{- fail "clusterInfoExporter.config.endpoint: name the API that receives the snapshots, or set clusterInfoExporter.enabled=false" -}}
{{- end -}}
{{- if not (and $t.enabled $v.gpuPartitioner.migAgent.telemetry.cluster) -}}
{{- fail "clusterInfoExporter.enabled: the telemetry server sends the snapshots: set telemetry.enabled=true (docs/coming-from-walkai.md), or clusterInfoExporter.enabled=false" -}}
{{- end -}}
{{- $name := coalesce $secret.existingSecret $secret.name "cluster-info-exporter-secrets" -}}
{{- if and $t.exportSecret (ne $t.exportSecret $name) -}}
{{- fail (printf "clusterInfoExporter.secret is %s and telemetry.exportSecret %s: put all tokens into the second, and name it in clusterInfoExporter.secret.existingSecret too" $name $t.exportSecret) -}}
{{- end -}}
{{- $_ := set $t "exportSecret" $name -}}
{{- $to := dict "url" $from.endpoint "cluster" $v.gpuPartitioner.migAgent.telemetry.cluster "tokenFile" (print "/etc/nos-export/" (default "apiToken" $secret.key)) -}}
{{- with $from.interval -}}
{{- if not (regexMatch "^[0-9]+(s|m)$" .) -}}
{{- fail (printf "clusterInfoExporter.config.interval: %s is not a number of seconds or minutes, such as 10s" .) -}}
{{- end -}}
{{- $_ := set $to "intervalSeconds" (mul (trimSuffix "m" (trimSuffix "s" .)) (ternary 60 1 (hasSuffix "m" .))) -}}
{{- end -}}
{{- $_ := set $t "config" (mergeOverwrite (dict "export" (dict "walkai" $to)) (deepCopy $t.config)) -}}
{{- include "nos.note" (dict "root" $ "text" "clusterInfoExporter: the telemetry server sends the snapshots (docs/telemetry-export.md).") -}}
{{- end -}}
{{- end -}}

{{- /* The GPU Operator's DCGM exporter has the same metrics under the same names. */ -}}
{{- define "nos.chooseGpuMetrics" -}}
{{- $t := .Values.gpuPartitioner.migAgent.telemetry -}}
{{- if not (kindIs "bool" $t.gpuMetrics) -}}
{{- $operator := .Capabilities.APIVersions.Has "nvidia.com/v1/ClusterPolicy" -}}
{{- $_ := set $t "gpuMetrics" (not $operator) -}}
{{- if $operator -}}
{{- include "nos.note" (dict "root" . "text" "gpuPartitioner.migAgent.telemetry.gpuMetrics is false, because the GPU Operator is installed and its DCGM exporter has the same metrics. Without that exporter set it to true.") -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "nos.withoutEffect" -}}
{{- $v := .Values -}}
{{- $p := $v.gpuPartitioner -}}
{{- $none := list -}}
{{- if hasKey $v "shareTelemetry" -}}{{- $none = append $none "shareTelemetry (nos sends nothing to its authors)" -}}{{- end -}}
{{- range $path, $of := dict "operator" $v.operator "gpuPartitioner" $p -}}
{{- if $of.kubeRbacProxy -}}{{- $none = append $none (print $path ".kubeRbacProxy (the daemons themselves ask for a token with the right to read metrics: metrics.secure)") -}}{{- end -}}
{{- end -}}
{{- if $p.devicePlugin -}}{{- $none = append $none "gpuPartitioner.devicePlugin (the agent offers the devices; to keep Nebuly's plugin: gpuPartitioner.migAgent.mps)" -}}{{- end -}}
{{- if hasKey $p "requeueIntervalSeconds" -}}{{- $none = append $none "gpuPartitioner.requeueIntervalSeconds (pods are planned for when they appear or change)" -}}{{- end -}}
{{- range $none -}}
{{- include "nos.note" (dict "root" $ "text" (print "No effect: " . ".")) -}}
{{- end -}}
{{- end -}}
