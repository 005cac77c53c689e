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

{{- define "dovetail.mpsSelector" -}}
app.kubernetes.io/name: {{ include "dovetail.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: mps
{{- end -}}

{{- define "dovetail.controllerSelector" -}}
app.kubernetes.io/name: {{ include "dovetail.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: controller
{{- end -}}

{{- define "dovetail.labels" -}}
{{ include "dovetail.selector" . }}
{{ include "dovetail.versions" . }}
{{- end -}}

{{- define "dovetail.mpsLabels" -}}
{{ include "dovetail.mpsSelector" . }}
{{ include "dovetail.versions" . }}
{{- end -}}

{{- define "dovetail.controllerLabels" -}}
{{ include "dovetail.controllerSelector" . }}
{{ include "dovetail.versions" . }}
{{- end -}}

{{- define "dovetail.controllerServiceAccount" -}}
{{- default (printf "%s-controller" (include "dovetail.fullname" .)) .Values.controller.serviceAccount.name -}}
{{- end -}}

{{- define "dovetail.versions" -}}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "dovetail.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default (printf "v%s" .Chart.AppVersion) }}
{{- end -}}

{{- /* Of a Pod of either DaemonSet: which nodes it is on, and what it takes to run there. */ -}}
{{- define "dovetail.onNodes" -}}
{{- if eq .Values.gpuAccess "runtimeClass" }}
runtimeClassName: {{ required "runtimeClassName: is empty, and gpuAccess is runtimeClass: name the RuntimeClass of NVIDIA's container runtime, as a rule nvidia" .Values.runtimeClassName }}
{{- end }}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- if ne .Values.gpuAccess "privileged" }}
securityContext:
  seccompProfile:
    type: RuntimeDefault
{{- end }}
{{- end -}}

{{- /* How a container of either DaemonSet sees the hardware. */ -}}
{{- define "dovetail.hardwareMounts" -}}
- name: driver-root
  mountPath: /driver-root
  readOnly: {{ .Values.hardware.driverRootReadOnly }}
  mountPropagation: HostToContainer
{{- if eq .Values.gpuAccess "privileged" }}
# GPU device nodes, also those that appear after the start.
- name: dev
  mountPath: /dev
{{- end }}
{{- if .Values.hardware.proc }}
- name: proc
  mountPath: /host-proc
  readOnly: true
{{- end }}
{{- end -}}

{{- define "dovetail.hardwareVolumes" -}}
- name: driver-root
  hostPath: {path: {{ .Values.hardware.driverRoot }}, type: {{ ternary "Directory" "DirectoryOrCreate" (eq .Values.hardware.driverRoot "/") }}}
{{- if eq .Values.gpuAccess "privileged" }}
- name: dev
  hostPath: {path: /dev, type: Directory}
{{- end }}
{{- with .Values.hardware.proc }}
- name: proc
  hostPath: {path: {{ . }}, type: Directory}
{{- end }}
{{- end -}}

{{- /* What dovetail-mps has on the host: its socket, and what clients share with it. */ -}}
{{- define "dovetail.mpsDir" -}}
/run/dovetail/mps
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
{{- if and (eq .kind "mps") (not $.Values.mps.enabled) -}}
{{- fail (printf "shares: %s: kind: mps, but no shares by MPS are offered where mps.enabled is false: set that to true, or take kind timeslice" .name) -}}
{{- end -}}
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

{{- /* What administrators say of NICs, as dovetail-node reads it. */ -}}
{{- define "dovetail.network" -}}
{{- toYaml (dict "apiVersion" "dovetail.dev/v1alpha1" "kind" "NodeNetwork" "rules" .Values.network) -}}
{{- end -}}

{{- /* Not empty where the agent is to make virtual functions. */ -}}
{{- define "dovetail.makesVFs" -}}
{{- range .Values.network }}{{ if .virtualFunctions }}yes{{ end }}{{ end -}}
{{- end -}}
