# Creates certificates and kubeconfigs of a control plane in $dir. Sourced by script/controlplane.
# shellcheck shell=bash disable=SC2154

# ssl ARGUMENT...: openssl, silent unless it fails.
ssl() {
  local said
  said=$(openssl "$@" 2>&1) || die "openssl $1 failed: $said"
}

# certificate NAME SUBJECT USAGE [SAN]: signed by the control plane's CA.
certificate() {
  local pki=$dir/pki
  {
    printf 'basicConstraints=CA:FALSE\nextendedKeyUsage=%s\n' "$3"
    [ -z "${4:-}" ] || printf 'subjectAltName=%s\n' "$4"
  } >"$pki/$1.ext"
  ssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$pki/$1.key" -subj "$2" \
    -out "$pki/$1.csr"
  ssl x509 -req -in "$pki/$1.csr" -CA "$pki/ca.crt" -CAkey "$pki/ca.key" -CAcreateserial -days 365 \
    -extfile "$pki/$1.ext" -out "$pki/$1.crt"
}

make_credentials() {
  local pki=$dir/pki
  command -v openssl >/dev/null || die "openssl makes the certificates and is not here; install it"
  mkdir -p "$pki"
  chmod 700 "$dir"
  ssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 365 \
    -keyout "$pki/ca.key" -out "$pki/ca.crt" -subj /CN=nos-test-control-plane \
    -addext keyUsage=critical,keyCertSign
  ssl genrsa -out "$pki/service-accounts.key" 2048
  ssl rsa -in "$pki/service-accounts.key" -pubout -out "$pki/service-accounts.pub"
  # 10.0.0.1 is the Service "kubernetes", by which pods reach it.
  certificate server /CN=kube-apiserver serverAuth \
    "IP:127.0.0.1,IP:10.0.0.1,DNS:localhost,DNS:kubernetes,DNS:kubernetes.default.svc"
  client kubeconfig admin system:masters
  client kwok.kubeconfig kwok system:masters
  client kube-controller-manager.kubeconfig system:kube-controller-manager
  client kube-scheduler.kubeconfig system:kube-scheduler
}

# client FILE USER [GROUP]: a kubeconfig with a client certificate.
client() {
  local name=${1%.kubeconfig}
  certificate "$name" "${3:+/O=$3}/CN=$2" clientAuth
  kubeconfig_of "$1" default "client-certificate-data: $(base64 -w0 "$dir/pki/$name.crt")" \
    "client-key-data: $(base64 -w0 "$dir/pki/$name.key")"
}

# kubeconfig_of FILE NAMESPACE CREDENTIAL_LINE...: written atomically.
kubeconfig_of() {
  local file=$dir/$1 namespace=$2
  shift 2
  cat >"$file.new" <<EOF
apiVersion: v1
kind: Config
current-context: nos-test
clusters:
- name: nos-test
  cluster:
    server: https://127.0.0.1:$(port_of kube-apiserver)
    certificate-authority-data: $(base64 -w0 "$dir/pki/ca.crt")
contexts:
- name: nos-test
  context: {cluster: nos-test, user: user, namespace: "$namespace"}
users:
- name: user
  user:
$(printf '    %s\n' "$@")
EOF
  chmod 600 "$file.new"
  mv "$file.new" "$file"
}

# service_account_kubeconfig NAME: with a token in a separate file, which may be replaced.
service_account_kubeconfig() {
  [[ $1 =~ ^[a-z0-9][a-z0-9.-]*$ ]] || die "a name has a-z, 0-9, '-' and '.', not '$1'"
  [ -n "$namespace" ] || usage "kubeconfig wants --namespace and --serviceaccount"
  [ -n "$service_account" ] || usage "kubeconfig wants --namespace and --serviceaccount"
  [ -f "$dir/kubeconfig" ] || die "no control plane in $dir; first: script/controlplane up$dir_option"
  local bound=()
  [ -z "$node" ] || bound=(--bound-object-kind Node --bound-object-name "$node")
  (umask 077 && k create token "$service_account" --namespace "$namespace" --duration "$duration" "${bound[@]}" \
    >"$dir/$1.token.new") || die "no token for service account $namespace/$service_account (see above)"
  mv "$dir/$1.token.new" "$dir/$1.token"
  kubeconfig_of "$1.kubeconfig" "$namespace" "tokenFile: $dir/$1.token"
  printf '%s\n' "$dir/$1.kubeconfig"
}
