{{- define "gateway.container" -}}
- name: strait-proxy
  image: {{ include "gateway.image" . | quote }}
  {{- with .Values.imagePullPolicy }}
  imagePullPolicy: {{ . }}
  {{- end }}
  args: [run]
  env:
    {{- include "gateway.env" . | trim | nindent 4 }}
  ports:
    {{- range (include "gateway.ports" . | fromJson).ports }}
    {{- if ne (int .targetPort) 15021 }}
    - {name: {{ .name }}, containerPort: {{ .targetPort }}, protocol: TCP}
    {{- end }}
    {{- end }}
    - {name: health, containerPort: 15021, protocol: TCP}
  startupProbe:
    httpGet: {path: /healthz/ready, port: health}
    periodSeconds: 1
    failureThreshold: 60
  readinessProbe:
    {{- if .Values.readinessProbe }}
    {{- toYaml .Values.readinessProbe | nindent 4 }}
    {{- else }}
    httpGet: {path: /healthz/ready, port: health}
    periodSeconds: 2
    {{- end }}
  livenessProbe:
    httpGet: {path: /healthz/live, port: health}
    periodSeconds: 10
  {{- with .Values.lifecycle }}
  lifecycle:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  resources:
    {{- toYaml .Values.resources | nindent 4 }}
  securityContext:
    {{- if .Values.containerSecurityContext }}
    {{- toYaml .Values.containerSecurityContext | nindent 4 }}
    {{- else }}
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    capabilities: {drop: [ALL]}
    {{- end }}
  {{- $mounts := include "gateway.mounts" . }}
  {{- if or (trim $mounts) .Values.volumeMounts }}
  volumeMounts:
    {{- with trim $mounts }}
    {{- . | nindent 4 }}
    {{- end }}
    {{- with .Values.volumeMounts }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- end }}
{{- end }}

{{- define "gateway.env" -}}
{{- if eq .Values.config.source "configMap" }}
- {name: STRAIT_CONFIG, value: /etc/strait/mesh}
{{- else if eq .Values.config.source "hub" }}
- {name: STRAIT_CONTROL, value: {{ printf "xds://%s" .Values.config.hub.address | quote }}}
- {name: STRAIT_CONTROL_CA, value: /etc/strait/hub/ca.crt}
- {name: STRAIT_CONTROL_TOKEN, value: /etc/strait/hub/token}
{{- else }}
- {name: STRAIT_CONTROL, value: "kubernetes://"}
{{- end }}
{{- if include "gateway.hasState" . }}
- {name: STRAIT_STATE, value: /var/lib/strait/state}
{{- end }}
# ready without a Gateway
- {name: STRAIT_ALLOW_EMPTY, value: "true"}
- name: POD_NAME
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
- name: POD_NAMESPACE
  valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
{{- if eq .Values.gateway.mode "gateway-api" }}
# Gateways of Istio select other labels
- {name: STRAIT_LABELS, value: {{ include "gateway.selector" . | fromYaml | include "gateway.list" | quote }}}
{{- else if ne .Values.config.source "kubernetes" }}
- {name: STRAIT_LABELS, value: {{ merge (include "gateway.istioLabels" . | fromYaml) .Values.labels | include "gateway.list" | quote }}}
{{- end }}
{{- if eq .Values.gateway.mode "istio" }}
# no Gateway has this name
- {name: STRAIT_GATEWAYS, value: {{ printf "%s/-" .Release.Namespace | quote }}}
{{- else }}
- {name: STRAIT_GATEWAYS, value: {{ .Values.gateway.gateways | default (list (printf "%s/*" .Release.Namespace)) | join "," | quote }}}
{{- end }}
{{- if .Values.ingress.enabled }}
- {name: STRAIT_INGRESS, value: "true"}
{{- if eq .Values.ingress.takeOver "nginx" }}
- {name: STRAIT_INGRESS_CONTROLLER, value: "strait.io/ingress-controller,k8s.io/ingress-nginx"}
- {name: STRAIT_INGRESS_CLASS, value: "strait,nginx"}
{{- end }}
{{- end }}
- {name: STRAIT_HEALTH, value: "0.0.0.0:15021"}
- {name: STRAIT_PRE_DRAIN, value: {{ .Values.drain.preDrain | quote }}}
- {name: STRAIT_DRAIN_TIME, value: {{ .Values.drain.time | quote }}}
- {name: STRAIT_ACCESS_LOG, value: {{ .Values.accessLog | quote }}}
- {name: STRAIT_LOG_LEVEL, value: {{ .Values.logLevel | quote }}}
{{- $limits := .Values.resources.limits | default dict }}
{{- $requests := .Values.resources.requests | default dict }}
{{- if .Values.concurrency }}
- {name: STRAIT_CONCURRENCY, value: {{ .Values.concurrency | quote }}}
{{- else if or $limits.cpu $requests.cpu }}
- name: STRAIT_CONCURRENCY
  valueFrom: {resourceFieldRef: {resource: {{ ternary "limits.cpu" "requests.cpu" (not (not $limits.cpu)) }}}}
{{- end }}
{{- with .Values.networkGateway }}
- {name: STRAIT_NETWORK, value: {{ . | quote }}}
{{- end }}
{{- with .Values.identity }}
{{- if eq .source "secret" }}
- {name: STRAIT_WORKLOAD_CERT, value: {{ printf "/etc/certs/%s" .secret.certificate | quote }}}
- {name: STRAIT_WORKLOAD_KEY, value: {{ printf "/etc/certs/%s" .secret.key | quote }}}
- {name: STRAIT_MESH_CA, value: {{ printf "/etc/certs/%s" .secret.ca | quote }}}
{{- else if eq .source "istio-ca" }}
- {name: STRAIT_IDENTITY, value: istio-ca}
- {name: STRAIT_SERVICE_ACCOUNT, valueFrom: {fieldRef: {fieldPath: spec.serviceAccountName}}}
- {name: STRAIT_CA_ADDRESS, value: {{ .address | quote }}}
- {name: STRAIT_CA_ROOT, value: /etc/certs/root-cert.pem}
- {name: STRAIT_CA_CRL, value: /etc/certs/ca-crl.pem}
- {name: STRAIT_CA_TOKEN, value: /etc/certs/token}
{{- end }}
{{- with .trustDomain }}
- {name: STRAIT_TRUST_DOMAIN, value: {{ . | quote }}}
{{- end }}
{{- end }}
{{- range $name, $value := .Values.env }}
- {name: {{ $name }}, value: {{ $value | quote }}}
{{- end }}
{{- with .Values.envVarFrom }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "gateway.mounts" -}}
{{- if eq .Values.config.source "configMap" }}
- {name: mesh, mountPath: /etc/strait/mesh, readOnly: true}
{{- else if eq .Values.config.source "hub" }}
- {name: hub, mountPath: /etc/strait/hub, readOnly: true}
{{- end }}
{{- if include "gateway.hasState" . }}
- {name: state, mountPath: /var/lib/strait}
{{- end }}
{{- if ne .Values.identity.source "none" }}
- {name: identity, mountPath: /etc/certs, readOnly: true}
{{- end }}
{{- end }}

{{- define "gateway.volumes" -}}
{{- if eq .Values.config.source "configMap" }}
- {name: mesh, configMap: {name: {{ include "gateway.name" . }}-mesh}}
{{- else if eq .Values.config.source "hub" }}
- name: hub
  projected:
    sources:
      - configMap: {name: strait-ca, items: [{key: ca.crt, path: ca.crt}]}
      - serviceAccountToken: {path: token, audience: strait-control, expirationSeconds: 43200}
{{- end }}
{{- if include "gateway.hasState" . }}
- {name: state, emptyDir: {}}
{{- end }}
{{- if eq .Values.identity.source "secret" }}
- {name: identity, secret: {secretName: {{ .Values.identity.secret.name | quote }}}}
{{- else if eq .Values.identity.source "istio-ca" }}
- name: identity
  projected:
    sources:
      - configMap: {name: istio-ca-root-cert, items: [{key: root-cert.pem, path: root-cert.pem}]}
      - configMap: {name: istio-ca-crl, optional: true, items: [{key: ca-crl.pem, path: ca-crl.pem}]}
      - serviceAccountToken: {path: token, audience: istio-ca, expirationSeconds: 43200}
{{- end }}
{{- end }}
