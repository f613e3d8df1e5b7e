{{- /*
Refuses values that the chart does not know, by name and with the nearest known one. The schema does
not refuse them: its errors have no suggestion. files/known-values.yaml has the known names. `enabled` belongs to a
chart that has this one as a dependency on condition.
*/ -}}
{{- define "nos.checkKnown" -}}
{{- $known := .Files.Get "files/known-values.yaml" | fromYaml -}}
{{- $unknown := include "nos.unknown" (dict "values" (omit .Values "global" "enabled") "known" $known "root" $known "path" "") | trim -}}
{{- if $unknown -}}
{{- fail (print "\n" $unknown) -}}
{{- end -}}
{{- end -}}

{{- /* a line for each value below `path` that is not known */ -}}
{{- define "nos.unknown" -}}
{{- range $name, $value := .values -}}
{{- $path := print $.path $name -}}
{{- if not (hasKey $.known $name) -}}
{{- if not (kindIs "invalid" $value) }}
unknown value {{ $path }}; {{ include "nos.hint" (dict "name" $name "path" $path "prefix" $.path "known" $.known "root" $.root) }}
{{- end -}}
{{- else if kindIs "map" $value -}}
{{- $below := index $.known $name -}}
{{- if and (kindIs "string" $below) (hasPrefix "=" $below) -}}
{{- $below = index $.root (trimPrefix "=" $below) -}}
{{- end -}}
{{- if kindIs "map" $below -}}
{{- include "nos.unknown" (dict "values" $value "known" $below "root" $.root "path" (print $path ".")) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "nos.hint" -}}
{{- $own := dict
  "scheduler.config.extenders" "nos scheduler calls no extenders: remove them, or have kube-scheduler call nos (docs/scheduler.md)"
  "config" "the configuration of the scheduler is scheduler.config"
  "replicaCount" "each component has its own, such as gpuPartitioner.replicaCount" -}}
{{- if hasKey $own .path -}}
{{- index $own .path -}}
{{- else -}}
{{- $nearest := "" -}}
{{- $distance := 1000 -}}
{{- range $name := keys .known | sortAlpha -}}
{{- $d := include "nos.distance" (dict "a" (lower $.name) "b" (lower $name)) | int -}}
{{- if lt $d $distance -}}
{{- $nearest = $name -}}
{{- $distance = $d -}}
{{- end -}}
{{- end -}}
{{- $elsewhere := include "nos.elsewhere" (dict "name" .name "known" .root "path" "") | trim | splitList "\n" | first -}}
{{- if or (le $distance 2) (le (mul 3 $distance) (len .name)) -}}
did you mean {{ .prefix }}{{ $nearest }}?
{{- else if $elsewhere -}}
did you mean {{ $elsewhere }}?
{{- else if le (mul 2 $distance) (len .name) -}}
did you mean {{ .prefix }}{{ $nearest }}?
{{- else -}}
known there: {{ keys .known | sortAlpha | join ", " }}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* the paths of all known values with this name */ -}}
{{- define "nos.elsewhere" -}}
{{- range $name, $below := .known -}}
{{- if eq $name $.name }}
{{ $.path }}{{ $name }}
{{- end -}}
{{- if kindIs "map" $below -}}
{{- include "nos.elsewhere" (dict "name" $.name "known" $below "path" (print $.path $name ".")) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* Levenshtein distance of two texts, row by row */ -}}
{{- define "nos.distance" -}}
{{- $b := splitList "" .b -}}
{{- $row := until (int (add1 (len $b))) -}}
{{- range $i, $letter := splitList "" .a -}}
{{- $next := list (add1 $i) -}}
{{- range $j, $other := $b -}}
{{- $replaced := add (index $row $j) (ternary 0 1 (eq $letter $other)) -}}
{{- $next = append $next (min (add1 (index $row (int (add1 $j)))) (add1 (last $next)) $replaced) -}}
{{- end -}}
{{- $row = $next -}}
{{- end -}}
{{- last $row -}}
{{- end -}}
