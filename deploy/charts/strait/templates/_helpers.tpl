{{- define "control.suffix" -}}
{{ ternary "" (printf "-%s" .Values.revision) (eq .Values.revision "strait") }}
{{- end }}

{{- define "control.name" -}}
{{ .Values.nameOverride | default "strait-control" }}{{ include "control.suffix" . }}
{{- end }}

{{- define "control.webhook" -}}
00-strait-injector{{ include "control.suffix" . }}
{{- end }}

{{- define "control.validator" -}}
strait-validator{{ include "control.suffix" . }}
{{- end }}

{{- define "control.account" -}}
{{ .Values.serviceAccount.name | default (ternary (include "control.name" .) "default" .Values.serviceAccount.create) }}
{{- end }}

{{- /* Account of a role: (list $ "status"). The hub has its own: it serves what its account may read. */}}
{{- define "control.accountOf" -}}
{{ include "control.account" (index . 0) }}{{ ternary "-hub" "" (eq (index . 1) "hub") }}
{{- end }}

{{- define "control.selector" -}}
app.kubernetes.io/name: {{ .Values.nameOverride | default "strait-control" }}
app.kubernetes.io/instance: {{ .Values.revision }}
{{- end }}

{{- define "control.labels" -}}
{{ include "control.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: strait
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "control.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end -}}
{{- end }}

{{- /* Roles that are enabled, with commas. */}}
{{- define "control.roles" -}}
{{- $roles := list }}
{{- if .Values.status.enabled }}{{ $roles = append $roles "status" }}{{ end }}
{{- if .Values.imports.enabled }}{{ $roles = append $roles "imports" }}{{ end }}
{{- if .Values.injector.enabled }}{{ $roles = append $roles "inject" }}{{ end }}
{{- if .Values.hub.enabled }}{{ $roles = append $roles "hub" }}{{ end }}
{{- join "," $roles }}
{{- end }}

{{- define "control.hasRules" -}}
{{- if and .Values.monitoring.rules (or .Values.monitoring.force (.Capabilities.APIVersions.Has "monitoring.coreos.com/v1")) }}true{{ end }}
{{- end }}

{{- /* Annotation by which cert-manager writes the CA of the webhook. */}}
{{- define "control.injectedCa" -}}
{{- if eq .Values.injector.certificate.source "cert-manager" }}
  annotations:
    cert-manager.io/inject-ca-from: {{ .Release.Namespace }}/{{ include "control.name" . }}-inject
{{- end }}
{{- end }}

{{- define "control.check" -}}
{{- if and .Values.injector.certificate.issuer (ne .Values.injector.certificate.source "cert-manager") }}
{{- fail "injector.certificate.issuer has no effect without injector.certificate.source=cert-manager" }}
{{- end }}
{{- if and .Values.imports.enabled (lt (len .Values.imports.clusters) 2) }}
{{- fail "imports.enabled needs two clusters or more in imports.clusters" }}
{{- end }}
{{- if and .Values.validation.enabled (not .Values.injector.enabled) }}
{{- fail "validation.enabled needs injector.enabled: its server validates" }}
{{- end }}
{{- if and .Values.injector.enabled (not .Values.hub.enabled) (not (dig "control" "url" "" .Values.injector.settings)) }}
{{- fail "injector.enabled needs hub.enabled, which sidecars follow, or another source in injector.settings.control.url, such as kubernetes://" }}
{{- end }}
{{- if and .Values.identity.enabled (not .Values.hub.enabled) }}
{{- fail "identity.enabled needs hub.enabled: its server signs" }}
{{- end }}
{{- if and .Values.status.gatewayService .Values.status.gatewayAddresses }}
{{- fail "status.gatewayService and status.gatewayAddresses are set: leave one of them out" }}
{{- end }}
{{- end }}

{{- /* Rules of the ClusterRole in a file of manifests: (list $ "status") */}}
{{- define "control.rules" -}}
{{- $root := index . 0 }}{{- $role := index . 1 }}
{{- range splitList "\n---\n" ($root.Files.Get (printf "files/%s.yaml" $role)) }}
{{- $object := fromYaml . }}
{{- if eq $object.kind "ClusterRole" }}
{{- range $object.rules }}
{{- if or $root.Values.status.readSecrets (not (has "secrets" .resources)) }}
- {{ toJson . }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- if eq $role "hub" }}
{{- /* what proxies read, but for the mesh configuration */}}
{{- range (fromYaml ($root.Files.Get "files/proxy.yaml")).rules }}
{{- if not (has "configmaps" .resources) }}
- {{ toJson . }}
{{- end }}
{{- end }}
{{- end }}
{{- if eq $role "inject" }}
- {{ toJson (dict "apiGroups" (list "admissionregistration.k8s.io") "resources" (list "mutatingwebhookconfigurations") "resourceNames" (list (include "control.webhook" $root)) "verbs" (list "patch")) }}
{{- if $root.Values.validation.enabled }}
- {{ toJson (dict "apiGroups" (list "admissionregistration.k8s.io") "resources" (list "validatingwebhookconfigurations") "verbs" (list "get" "list" "watch")) }}
- {{ toJson (dict "apiGroups" (list "admissionregistration.k8s.io") "resources" (list "validatingwebhookconfigurations") "resourceNames" (list (include "control.validator" $root)) "verbs" (list "patch")) }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Arguments of a role: (list $ "status") */}}
{{- define "control.args" -}}
{{- $root := index . 0 }}{{- $role := index . 1 }}{{- $values := $root.Values }}
- control
{{- if eq $role "status" }}
- --status-for=kubernetes://
- --gateway-controller={{ $values.gatewayController }}
{{- with $values.status.gatewayService }}
- --gateway-service={{ . }}
{{- end }}
{{- range $values.status.gatewayAddresses }}
- --gateway-address={{ . }}
{{- end }}
{{- if not $values.ingress.status }}
- --ingress-status=off
{{- else if eq $values.ingress.takeOver "nginx" }}
- --ingress-controller=strait.io/ingress-controller,k8s.io/ingress-nginx
- --ingress-class=strait,nginx
{{- end }}
{{- else if eq $role "hub" }}
- --serve=kubernetes://
{{- if $values.identity.enabled }}
- --issue-identities
- --trust-domain={{ $values.identity.trustDomain }}
- --max-ttl={{ $values.identity.ttl }}
{{- if $values.identity.ca.secret }}
- --ca-cert=/etc/strait/ca/tls.crt
- --ca-key=/etc/strait/ca/tls.key
- --ca-root=/etc/strait/ca/ca.crt
{{- end }}
{{- end }}
- --inject-settings=/etc/strait/inject/settings.yaml
- --service={{ include "control.name" $root }}
- --health=0.0.0.0:15021
{{- else if eq $role "inject" }}
- --inject
- --inject-settings=/etc/strait/inject/settings.yaml
- --service={{ include "control.name" $root }}-inject
- --health=0.0.0.0:15021
{{- if $values.injector.adoptIstioInjection }}
- --adopt-istio-injection
{{- end }}
{{- if $values.validation.enabled }}
- --validate
{{- end }}
{{- if eq $values.injector.certificate.source "cert-manager" }}
- --tls-cert=/etc/strait/certificate/tls.crt
- --tls-key=/etc/strait/certificate/tls.key
{{- end }}
{{- else }}
{{- $clusters := list }}
{{- range $values.imports.clusters }}{{ $clusters = append $clusters (printf "kubernetes://%s=%s" .context .key) }}{{ end }}
- --imports-between={{ join "," $clusters }}
- --kubeconfig=/etc/strait/access/kubeconfig
{{- if $values.imports.gateways }}
- --clusters=/etc/strait/clusters/clusters.yaml
{{- end }}
{{- end }}
- --lease-namespace={{ $root.Release.Namespace }}
- --log-level={{ $values.logLevel }}
{{- range $values.extraArgs }}
- {{ . | quote }}
{{- end }}
{{- end }}

{{- /* Settings of the injector, as its ConfigMap has them. */ -}}
{{- define "control.settings" -}}
{{- $settings := merge (dict "revision" .Values.revision "image" (include "control.image" .)) .Values.injector.settings }}
{{- if .Values.hub.enabled }}
{{- $settings = merge $settings (dict "control" (dict "url" (printf "xds://%s.%s.svc:6444" (include "control.name" .) .Release.Namespace))) }}
{{- end }}
{{- if .Values.identity.enabled }}
{{- $settings = merge $settings (dict "identity" (dict "source" "strait-ca")) }}
{{- if ne .Values.identity.trustDomain "cluster.local" }}
{{- $settings = merge $settings (dict "env" (dict "STRAIT_TRUST_DOMAIN" .Values.identity.trustDomain)) }}
{{- end }}
{{- end }}
{{- toYaml $settings }}
{{- end }}
