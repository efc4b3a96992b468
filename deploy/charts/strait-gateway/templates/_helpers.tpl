{{- define "gateway.name" -}}
{{ .Values.name | default .Release.Name }}
{{- end }}

{{- define "gateway.account" -}}
{{ .Values.serviceAccount.name | default (ternary (include "gateway.name" .) "default" .Values.serviceAccount.create) }}
{{- end }}

{{- /* What the cluster's objects are called: names of two namespaces differ. */}}
{{- define "gateway.clusterName" -}}
strait-gateway:{{ .Release.Namespace }}:{{ include "gateway.name" . }}
{{- end }}

{{- define "gateway.selector" -}}
app.kubernetes.io/name: strait-gateway
app.kubernetes.io/instance: {{ include "gateway.name" . }}
{{- end }}

{{- /* The labels that Gateways of Istio select. */}}
{{- define "gateway.istioLabels" -}}
app: {{ .Values.labels.app | default (include "gateway.name" .) | quote }}
istio: {{ .Values.labels.istio | default (include "gateway.name" . | trimPrefix "istio-") | quote }}
{{- end }}

{{- /* Labels as a flag takes them. */}}
{{- define "gateway.list" -}}
{{- $list := list }}
{{- range $key, $value := . }}{{ $list = append $list (printf "%s=%v" $key $value) }}{{ end }}
{{- join "," $list }}
{{- end }}

{{- define "gateway.labels" -}}
{{ include "gateway.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: strait
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- range $key, $value := omit .Values.labels "app" "istio" }}
{{ $key }}: {{ $value | quote }}
{{- end }}
{{- end }}

{{- define "gateway.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end -}}
{{- end }}

{{- /* Ports of the Service: a list in an object, since templates return text. */}}
{{- define "gateway.ports" -}}
{{- $ports := .Values.service.ports }}
{{- if .Values.networkGateway }}
{{- $tls := .Values.networkGatewayPorts.tls }}
{{- $ports = append $ports (dict "name" "tls" "port" $tls.port "protocol" "TCP" "targetPort" ($tls.targetPort | default $tls.port)) }}
{{- end }}
{{- toJson (dict "ports" $ports) }}
{{- end }}

{{- /* Whether the proxy follows the API server itself. */}}
{{- define "gateway.ofCluster" -}}
{{- if eq .Values.config.source "kubernetes" }}true{{ end }}
{{- end }}

{{- define "gateway.hasState" -}}
{{- if and .Values.state.enabled (ne .Values.config.source "configMap") }}true{{ end }}
{{- end }}

{{- define "gateway.hasPodMonitor" -}}
{{- if and .Values.monitoring.podMonitor.enabled (or .Values.monitoring.force (.Capabilities.APIVersions.Has "monitoring.coreos.com/v1")) }}true{{ end }}
{{- end }}

{{- define "gateway.check" -}}
{{- $drain := add (trimSuffix "s" .Values.drain.preDrain | atoi) (trimSuffix "s" .Values.drain.time | atoi) }}
{{- if le (int .Values.terminationGracePeriodSeconds) (int $drain) }}
{{- fail (printf "terminationGracePeriodSeconds is %d: it must be more than drain.preDrain and drain.time together (%d s), or the kubelet kills the proxy while requests finish" (int .Values.terminationGracePeriodSeconds) $drain) }}
{{- end }}
{{- if and (eq .Values.config.source "configMap") (not .Values.config.mesh) }}
{{- fail "config.source is configMap, and config.mesh is empty: give it the resources, --set-file config.mesh=mesh.yaml" }}
{{- end }}
{{- if and (ne .Values.config.source "configMap") .Values.config.mesh }}
{{- fail "config.mesh has no effect without config.source=configMap" }}
{{- end }}
{{- if and (eq .Values.identity.source "secret") (not .Values.identity.secret.name) }}
{{- fail "identity.source is secret, and identity.secret.name is empty: name the Secret" }}
{{- end }}
{{- end }}
