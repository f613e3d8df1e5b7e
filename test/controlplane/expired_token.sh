#!/usr/bin/env bash
# Prints a service account token that the API server accepts for about SECONDS more, or that has
# expired if SECONDS is negative; the API itself issues none for less than ten minutes. Signed with
# the control plane's own key. API servers accept a token for a minute after its expiry (source:
# go-jose's default leeway, which k8s.io/kubernetes pkg/serviceaccount uses) and cache it for ten
# seconds.
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
