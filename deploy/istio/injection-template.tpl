{{- /* A template of Istio's own injector: a pod with the annotation `inject.istio.io/templates: strait` gets a sidecar of
Strait in place of Envoy, with a certificate of istiod's CA. docs/move-sidecars-from-istio.md says how to install it.

The containers have the names that the injector and istio-cni look for: the injector rewrites the probes of the workload and
sets ISTIO_KUBE_APP_PROBERS. */ -}}
metadata:
  labels:
    security.istio.io/tlsMode: {{ index .ObjectMeta.Labels `security.istio.io/tlsMode` | default "istio" | quote }}
    service.istio.io/canonical-name: {{ index .ObjectMeta.Labels `service.istio.io/canonical-name` | default (index .ObjectMeta.Labels `app`) | default .DeploymentMeta.Name | quote }}
    service.istio.io/canonical-revision: {{ index .ObjectMeta.Labels `service.istio.io/canonical-revision` | default (index .ObjectMeta.Labels `version`) | default "latest" | quote }}
  annotations:
    sidecar.istio.io/status: '{"revision":"{{ .Revision | default "default" }}","containers":["istio-proxy"],"initContainers":["istio-init"]}'
spec:
  initContainers:
  - name: istio-init
    image: {{ annotation .ObjectMeta `strait.io/image` "registry.example/strait:0.1.0" | quote }}
    args:
    - iptables
    - install
    - --proxy-uid=1337
    {{- with annotation .ObjectMeta `traffic.sidecar.istio.io/excludeInboundPorts` "" }}
    - --exclude-inbound-ports={{ . }}
    {{- end }}
    {{- with annotation .ObjectMeta `traffic.sidecar.istio.io/excludeOutboundPorts` "" }}
    - --exclude-outbound-ports={{ . }}
    {{- end }}
    {{- with annotation .ObjectMeta `traffic.sidecar.istio.io/excludeOutboundIPRanges` "" }}
    - --exclude-outbound-cidrs={{ . }}
    {{- end }}
    resources:
      requests: {cpu: 10m, memory: 16Mi}
      limits: {memory: 64Mi}
    securityContext:
      runAsNonRoot: false
      runAsUser: 0
      runAsGroup: 0
      allowPrivilegeEscalation: false
      readOnlyRootFilesystem: true
      capabilities: {drop: [ALL], add: [NET_ADMIN]}
  - name: istio-proxy
    image: {{ annotation .ObjectMeta `strait.io/image` "registry.example/strait:0.1.0" | quote }}
    # a native sidecar, of Kubernetes 1.29 and later
    restartPolicy: Always
    args: [run]
    env:
    - {name: STRAIT_MODE, value: sidecar}
    # the proxy follows the API server; istiod gives its configuration to no workload
    - {name: STRAIT_CONTROL, value: "kubernetes://"}
    - {name: STRAIT_NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
    - {name: STRAIT_SERVICE_ACCOUNT, valueFrom: {fieldRef: {fieldPath: spec.serviceAccountName}}}
    - {name: STRAIT_POD_LABELS, value: /etc/podinfo/labels}
    - {name: STRAIT_POD_ANNOTATIONS, value: /etc/podinfo/annotations}
    - {name: STRAIT_ROOT_NAMESPACE, value: {{ .Values.global.istioNamespace | quote }}}
    - {name: STRAIT_DOMAIN, value: {{ .Values.global.proxy.clusterDomain | default "cluster.local" | quote }}}
    - {name: STRAIT_TRUST_DOMAIN, value: {{ .MeshConfig.TrustDomain | default "cluster.local" | quote }}}
    - {name: STRAIT_IDENTITY, value: istio-ca}
    - {name: STRAIT_CA_ADDRESS, value: "istiod.{{ .Values.global.istioNamespace }}.svc:15012"}
    - {name: STRAIT_CA_CLUSTER_ID, value: {{ .Values.global.multiCluster.clusterName | default "Kubernetes" | quote }}}
    - {name: STRAIT_HEALTH, value: "0.0.0.0:15020"}
    - {name: STRAIT_CONCURRENCY, value: "1"}
    - {name: STRAIT_TERMINATION_DRAIN_MINIMUM, value: 0s}
    - {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
    - {name: POD_NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
    - {name: POD_UID, valueFrom: {fieldRef: {fieldPath: metadata.uid}}}
    - {name: NODE_NAME, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
    # as in the template of Istio's own sidecar
    {{- range $key, $value := .ProxyConfig.ProxyMetadata }}
    - {name: {{ $key | quote }}, value: {{ $value | quote }}}
    {{- end }}
    startupProbe: {httpGet: {path: /healthz/ready, port: 15020}, periodSeconds: 1, failureThreshold: 600}
    readinessProbe: {httpGet: {path: /healthz/ready, port: 15020}, periodSeconds: 2, failureThreshold: 4}
    lifecycle: {preStop: {exec: {command: [/strait, drain]}}}
    resources:
      requests: {cpu: 50m, memory: 32Mi}
      limits: {memory: 128Mi}
    securityContext:
      runAsNonRoot: true
      runAsUser: 1337
      runAsGroup: 1337
      allowPrivilegeEscalation: false
      readOnlyRootFilesystem: true
      capabilities: {drop: [ALL]}
    volumeMounts:
    - {name: strait-podinfo, mountPath: /etc/podinfo, readOnly: true}
    - {name: istiod-ca-cert, mountPath: /var/run/secrets/istio, readOnly: true}
    - {name: istio-ca-crl, mountPath: /var/run/secrets/istio/crl, readOnly: true}
    - {name: istio-token, mountPath: /var/run/secrets/tokens, readOnly: true}
  volumes:
  - name: strait-podinfo
    downwardAPI:
      items:
      - {path: labels, fieldRef: {fieldPath: metadata.labels}}
      - {path: annotations, fieldRef: {fieldPath: metadata.annotations}}
  - {name: istiod-ca-cert, configMap: {name: istio-ca-root-cert}}
  - {name: istio-ca-crl, configMap: {name: istio-ca-crl, optional: true}}
  - name: istio-token
    projected: {sources: [{serviceAccountToken: {path: istio-token, expirationSeconds: 43200, audience: istio-ca}}]}
