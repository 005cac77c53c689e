{{- define "dovetail.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "dovetail.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- $name := include "dovetail.name" . -}}
{{- $full := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{- $full | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "dovetail.serviceAccount" -}}
{{- default (printf "%s-node" (include "dovetail.fullname" .)) .Values.serviceAccount.name -}}
{{- end -}}

{{- /* What never changes for a release: selectors are immutable. */ -}}
{{- define "dovetail.selector" -}}
app.kubernetes.io/name: {{ include "dovetail.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: node
{{- end -}}

{{- define "dovetail.labels" -}}
{{ include "dovetail.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- /* Sizes of shares as dovetail-node reads them, with spaces between. */ -}}
{{- define "dovetail.shares" -}}
{{- $sizes := list -}}
{{- $names := dict -}}
{{- range .Values.shares -}}
{{- if hasKey $names .name -}}
{{- fail (printf "shares: the name %q is there twice: give each size its own, whatever its kind" .name) -}}
{{- end -}}
{{- $_ := set $names .name true -}}
{{- if and (eq .kind "timeslice") (hasKey . "compute") -}}
{{- fail (printf "shares: %s: compute: shares of kind timeslice run in turn, each with the whole GPU: leave it out" .name) -}}
{{- end -}}
{{- $size := printf "name=%s,kind=%s,memory=%s" .name .kind .memory -}}
{{- with .compute -}}
{{- $size = printf "%s,compute=%v" $size . -}}
{{- end -}}
{{- $sizes = append $sizes $size -}}
{{- end -}}
{{- join " " $sizes -}}
{{- end -}}
