#!/usr/bin/env bash
# Makes an authority, certificates of three servers and of one client, and secrets.yaml with what the gateway needs, in
# the directory that is named, or in that of this script.
set -euo pipefail
cd "${1:-$(dirname "$0")}"
mkdir -p certificates
cd certificates

authority() {
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 825 -subj "/CN=$1" \
    -addext keyUsage=critical,keyCertSign,cRLSign -keyout "$1.key" -out "$1.crt" 2>/dev/null
}

issue() { # NAME HOST AUTHORITY
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$2" -keyout "$1.key" -out "$1.csr" 2>/dev/null
  openssl x509 -req -in "$1.csr" -CA "$3.crt" -CAkey "$3.key" -CAcreateserial -days 397 -out "$1.crt" \
    -extfile <(echo "subjectAltName=DNS:$2") 2>/dev/null
  rm "$1.csr"
}

secret() { # NAME [KEY FILE]...
  printf -- '---\napiVersion: v1\nkind: Secret\nmetadata: {name: %s}\ndata:\n' "$1"
  shift
  while [[ $# -gt 0 ]]; do
    printf '  %s: %s\n' "$1" "$(base64 <"$2" | tr -d '\n')"
    shift 2
  done
}

authority ca
authority partners
for name in www shop api; do issue "$name" "$name.example" ca; done
issue partner partner.example partners
{
  secret www tls.crt www.crt tls.key www.key
  secret shop tls.crt shop.crt tls.key shop.key
  secret api tls.crt api.crt tls.key api.key ca.crt partners.crt
} >../secrets.yaml
