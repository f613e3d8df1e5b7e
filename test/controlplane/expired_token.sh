#!/usr/bin/env bash
# Prints a token of a service account that the API server takes for about SECONDS more, or that has
# expired when that is negative; the API itself gives none for less than ten minutes. Signed with the
# control plane's own key. API servers take a token for a minute after its end (Source: go-jose's
# default leeway, which k8s.io/kubernetes pkg/serviceaccount uses) and remember it for ten seconds.
#
#   expired_token.sh DIR NAMESPACE NAME UID SECONDS
set -euo pipefail
end=$(($(date +%s) - 60 + $5))

url64() { base64 -w0 | tr '+/' '-_' | tr -d '='; }
claims="{\"iss\":\"https://kubernetes.default.svc\",\"aud\":[\"https://kubernetes.default.svc\"],
\"iat\":$((end - 600)),\"nbf\":$((end - 600)),\"exp\":$end,\"sub\":\"system:serviceaccount:$2:$3\",
\"kubernetes.io\":{\"namespace\":\"$2\",\"serviceaccount\":{\"name\":\"$3\",\"uid\":\"$4\"}}}"
signed=$(printf '{"alg":"RS256","typ":"JWT"}' | url64).$(printf '%s' "$claims" | url64)
signature=$(printf '%s' "$signed" | openssl dgst -sha256 -sign "$1/pki/service-accounts.key" | url64)
printf '%s.%s' "$signed" "$signature"
