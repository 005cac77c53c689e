{{- /* The name of all that belongs to the webhook. */ -}}
{{- define "dovetail.webhook" -}}
{{ include "dovetail.fullname" . }}-webhook
{{- end -}}

{{- /* Whether there is one: the controller answers. */ -}}
{{- define "dovetail.hasWebhook" -}}
{{- if and .Values.controller.enabled .Values.webhook.enabled }}true{{ end -}}
{{- end -}}

{{- /* How the API server calls it. A cluster goes on without: prepare checks what was not seen here. */ -}}
{{- define "dovetail.webhookCall" -}}
clientConfig:
  service:
    namespace: {{ .Release.Namespace }}
    name: {{ include "dovetail.webhook" . }}
    path: /validate
admissionReviewVersions: [v1]
sideEffects: None
timeoutSeconds: {{ .Values.webhook.timeoutSeconds }}
failurePolicy: {{ .Values.webhook.failurePolicy }}
{{- end -}}
