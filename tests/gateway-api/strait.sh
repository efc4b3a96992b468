# Strait for the conformance suite, as deploy/kubernetes installs it: the gateway and the status writer have the tokens of their
# ServiceAccounts, which have the rights of the manifests and no others. STRAIT is the binary; `conformance` runs this.
set -eu
if [ "$1" = prepare ]; then
  command -v "${STRAIT:?the path of the strait binary}" >/dev/null
  exit
fi
deploy=$(cd "$(dirname "$0")/../.." && pwd)/deploy/kubernetes
cd "$OUT"

# The rights of manifests, without the Deployments: rights FILTER, a Python expression over `one`, an object
rights() {
  python3 -c "
import sys, yaml
kinds = ['Namespace', 'ServiceAccount', 'ClusterRole', 'ClusterRoleBinding', 'Role', 'RoleBinding']
all = [one for one in yaml.safe_load_all(sys.stdin) if one and one['kind'] in kinds and ($1)]
yaml.safe_dump_all(all, sys.stdout)" | kubectl apply --filename - >>rights.log
}
# A kubeconfig with the token of a ServiceAccount: account FILE, namespace, name
account() {
  cp "$KUBECONFIG" "$1"
  kubectl --kubeconfig "$1" config set-credentials admin --token "$(kubectl --namespace "$2" create token "$3" --duration 4h)" >>rights.log
}

for part in status control gateway-control; do kubectl kustomize "$deploy/$part" | rights True; done
# A gateway reads the certificates of a namespace where a RoleBinding permits it: those of the suite.
for namespace in gateway-conformance-infra gateway-conformance-app-backend gateway-conformance-web-backend; do
  kubectl create namespace "$namespace" >>rights.log
  kubectl kustomize "$deploy/gateway-control" | rights "one['metadata'].update(namespace='$namespace') or one['kind'] in ['Role', 'RoleBinding']"
done
account writer.kubeconfig strait-status strait-status
account gateway.kubeconfig edge strait

"$STRAIT" control --status-for kubernetes:// --kubeconfig writer.kubeconfig --lease-namespace strait-status \
  --gateway-addresses "$GATEWAY_ADDRESSES" ${WRITER_ARGS:-} >writer.log 2>&1 &
exec "$STRAIT" run --mode gateway --namespace edge --control kubernetes:// --kubeconfig gateway.kubeconfig \
  --gateway-addresses "$GATEWAY_ADDRESSES" ${ROUTER_ARGS:-}
