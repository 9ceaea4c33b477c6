{{- define "moorline.name" -}}
{{ .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "moorline.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{ .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else if contains (include "moorline.name" .) .Release.Name -}}
{{ .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-%s" .Release.Name (include "moorline.name" .) | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{/* What has no namespace, or stands in somebody else's. A namespace has no dot, so that no two releases share a name. */}}
{{- define "moorline.widename" -}}
{{ .Release.Namespace }}.{{ include "moorline.fullname" . }}
{{- end }}

{{- define "moorline.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{ .Values.serviceAccount.name | default (include "moorline.fullname" .) }}
{{- else -}}
{{ required "serviceAccount.create is false: serviceAccount.name must say which ServiceAccount there is" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "moorline.subject" -}}
- kind: ServiceAccount
  name: {{ include "moorline.serviceAccount" . }}
  namespace: {{ .Release.Namespace }}
{{- end }}

{{- define "moorline.selector" -}}
app.kubernetes.io/name: {{ include "moorline.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "moorline.labels" -}}
{{ include "moorline.selector" . }}
app.kubernetes.io/part-of: moorline
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "moorline.image" -}}
{{- $repository := required "image.repository is not set: make the image (make dist image), push it to a registry that the cluster pulls from, and say where it is with --set image.repository=registry.example.com/moorline" .Values.image.repository -}}
{{- $digest := .Values.image.digest -}}
{{- if and (eq .Values.image.variant "helm") .Values.image.helmDigest -}}
{{- $digest = .Values.image.helmDigest -}}
{{- end -}}
{{- if $digest -}}
{{ $repository }}@{{ $digest }}
{{- else -}}
{{ $repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ with .Values.image.variant }}-{{ . }}{{ end }}
{{- end }}
{{- end }}

{{/* The port of the figures and webhooks. */}}
{{- define "moorline.port" -}}
{{ regexFind "[0-9]+$" .Values.settings.listen }}
{{- end }}

{{/* The address of the probes alone: port 8082 beside the figures, where the settings have none. */}}
{{- define "moorline.probes" -}}
{{ .Values.settings.probes | default (printf "%s:8082" (regexReplaceAll ":[0-9]+$" .Values.settings.listen "")) }}
{{- end }}

{{/* The port of the status page. */}}
{{- define "moorline.page" -}}
{{ regexFind "[0-9]+$" .Values.settings.page | default "8081" }}
{{- end }}

{{/* Not empty if people can sign in to the console. */}}
{{- define "moorline.console" -}}
{{- $console := .Values.settings.console | default dict -}}
{{- if or $console.tokenAudience $console.oidcIssuer $console.proxyUserHeader -}}
true
{{- end }}
{{- end }}

{{/* The daemon's settings. */}}
{{- define "moorline.settings" -}}
{{- $settings := deepCopy .Values.settings }}
{{- if .Values.webhookSecret }}
{{- $_ := set $settings "webhookSecretFile" "/etc/moorline/webhook/secret" }}
{{- end }}
{{- if .Values.page.secret }}
{{- $_ := set $settings.console "secrets" "/etc/moorline/console" }}
{{- end }}
{{- if .Values.page.tlsSecret }}
{{- $_ := set $settings.console "tls" "/etc/moorline/tls" }}
{{- end }}
{{- if .Values.page.expose }}
{{- $host := regexReplaceAll ":[0-9]+$" .Values.settings.listen "" }}
{{- $_ := set $settings "page" (printf "%s:%s" $host (include "moorline.page" .)) }}
{{- end }}
{{- toYaml $settings }}
{{- end }}

{{/* Those whose change takes a new daemon; the others take effect as soon as the ConfigMap has reached the pod. */}}
{{- define "moorline.restarts" -}}
{{- $live := list "logLevel" "daemonIdentityNamespaces" "qps" "burst" "retryBase" "retryCap" "manifestRetry" "claimTimeout" "verifyEvery" "verifyRate" }}
{{- $settings := fromYaml (include "moorline.settings" .) }}
{{- range $live }}
{{- $_ := unset $settings . }}
{{- end }}
{{- toYaml $settings }}
{{- end }}

{{/* The Secret with the keys that objects are proven with. */}}
{{- define "moorline.keySecret" -}}
{{ .Values.settings.keySecret | default (printf "%s-key" (include "moorline.lease" .)) }}
{{- end }}

{{/* The Lease that the daemon takes, as it names it. */}}
{{- define "moorline.lease" -}}
moorline{{ with .Values.settings.instance }}-{{ . }}{{ end }}
{{- end }}
