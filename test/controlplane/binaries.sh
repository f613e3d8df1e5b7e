# Locates the programs of a control plane on this machine, or builds them from the Go modules pinned
# in */go.mod, and finds files for tests in such a module. Sourced by script/controlplane.
# shellcheck shell=bash

programs=(etcd kube-apiserver kube-controller-manager kube-scheduler kube-proxy kwok kubectl kubelet helm kustomize
  crane containerd containerd-shim-runc-v2 ctr kueue karpenter)
declare -A package_of=(
  [etcd]=go.etcd.io/etcd/server/v3
  [kube-apiserver]=k8s.io/kubernetes/cmd/kube-apiserver
  [kube-controller-manager]=k8s.io/kubernetes/cmd/kube-controller-manager
  [kube-scheduler]=k8s.io/kubernetes/cmd/kube-scheduler
  [kube-proxy]=k8s.io/kubernetes/cmd/kube-proxy
  [kwok]=sigs.k8s.io/kwok/cmd/kwok
  [kubectl]=k8s.io/kubernetes/cmd/kubectl
  [kubelet]=k8s.io/kubernetes/cmd/kubelet
  [helm]=helm.sh/helm/v3/cmd/helm
  [kustomize]=sigs.k8s.io/kustomize/kustomize/v5
  [crane]=github.com/google/go-containerregistry/cmd/crane
  [containerd]=github.com/containerd/containerd/v2/cmd/containerd
  [containerd-shim-runc-v2]=github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2
  [ctr]=github.com/containerd/containerd/v2/cmd/ctr
  [kueue]=sigs.k8s.io/kueue/cmd/kueue
  [karpenter]=sigs.k8s.io/karpenter/kwok
)
# Older versions lack features that we use: `kubectl create token` and waiting for creation; etcd
# without fsync; CDI in containerd, whose three programs are of one version.
declare -A oldest=([kubectl]=1.31.0 [etcd]=3.5.0 [containerd]=2.0.0 [containerd-shim-runc-v2]=2.0.0 [ctr]=2.0.0)

modules=$PWD/test/controlplane
# The programs that come in the version asked for with --kubernetes; all others are the same for
# every version.
versioned=(kube-apiserver kube-controller-manager kube-scheduler kubelet)
pinned=$(cat "$modules"/{kubernetes,kwok}/go.mod "$modules"/{kubernetes,kwok}/go.sum | sha256sum | cut -c1-16)
caches=${NOS_CACHE:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/nos}
cache=$caches/controlplane/$pinned/bin
declare -A path_of=()

# versions: the versions of Kubernetes that --kubernetes takes, besides the default one.
versions() { (cd "$modules" && printf '%s\n' kubernetes-*/go.mod | sed 's|^kubernetes-||; s|/go.mod$||' | sort -V); }

# of_version NAME: it comes from the module of the version in $kubernetes.
of_version() { [ -n "${kubernetes:-}" ] && [[ " ${versioned[*]} " == *" $1 "* ]]; }

# module_of NAME: the directory of the Go module that pins it.
module_of() {
  of_version "$1" && echo "$modules/kubernetes-$kubernetes" && return
  case $1 in
    kwok | crane | kueue | karpenter) echo "$modules/$1" ;;
    containerd* | ctr) echo "$modules/containerd" ;;
    kube-proxy) echo "$modules/network" ;;
    *) echo "$modules/kubernetes" ;;
  esac
}

# cache_of NAME: the folder that it is built into. Modules besides those of the default control plane
# have folders of their own: a new crane or containerd needs no new control plane.
cache_of() {
  local module
  module=$(module_of "$1")
  case ${module##*/} in
    kubernetes | kwok) echo "$cache" ;;
    *) echo "$caches/${module##*/}/$(cat "$module"/go.{mod,sum} | sha256sum | cut -c1-16)/bin" ;;
  esac
}

# recent_enough NAME PATH
recent_enough() {
  local least=${oldest[$1]:-} version asked=(--version)
  [ -n "$least" ] || return 0
  case $1 in
    kubectl) asked=(version --client) ;;
    containerd-shim-*) asked=(-v) ;;
  esac
  version=$("$2" "${asked[@]}" 2>/dev/null | grep -m1 -oE '[0-9]+\.[0-9]+\.[0-9]+' | head -n 1)
  [ "$(printf '%s\n' "$least" "$version" | sort -V | head -n 1)" = "$least" ]
}

# locate NAME: stores its path in path_of; fails if it is not found. Only the cache is known to have
# a certain version of Kubernetes.
locate() {
  local path
  [ -z "${path_of[$1]:-}" ] || return 0
  if of_version "$1"; then
    path=$(cache_of "$1")/$1
    [ -x "$path" ] && path_of[$1]=$path
    return
  fi
  for path in "${KUBEBUILDER_ASSETS:-/nonexistent}/$1" "$(command -v "$1")" "$(cache_of "$1")/$1"; do
    [ -x "$path" ] && recent_enough "$1" "$path" && path_of[$1]=$path && return
  done
  return 1
}

# need_binaries NAME...: stores all paths in path_of; builds missing programs.
need_binaries() {
  local name missing=()
  for name in "$@"; do
    [ -n "${package_of[$name]:-}" ] || die "no program '$name' here; one of: ${programs[*]}"
    locate "$name" || missing+=("$name")
  done
  [ ${#missing[@]} -eq 0 ] && return
  build_binaries "${missing[@]}"
  for name in "${missing[@]}"; do path_of[$name]=$(cache_of "$name")/$name; done
}

# find_go WANTED: sets $go to the go command, or exits. Go itself checks whether it is recent enough
# for the modules; since 1.21 it downloads a newer version if that is allowed.
find_go() {
  local why
  go=$(command -v go || echo /usr/local/go/bin/go)
  if [ ! -x "$go" ]; then
    why="there is no Go on this machine"
  elif ! why=$(cd "$modules/kubernetes" && "$go" list -m 2>&1); then
    why="$("$go" version) will not do: ${why//$'\n'/ }"
  else
    return 0
  fi
  say "skipped: no $1 here, and $why"
  say "install Go $(sed -n 's/^go //p' "$modules/kubernetes/go.mod") or newer (https://go.dev/doc/install)," \
    "or set KUBEBUILDER_ASSETS to a folder with these programs"
  exit 77
}

# need_version: the module of the version in $kubernetes can be had, or exits.
need_version() {
  local module=$modules/kubernetes-$kubernetes why
  why=$(cd "$module" && "$go" mod download k8s.io/kubernetes 2>&1) && return
  say "skipped: no Kubernetes $kubernetes here (${module#"$PWD"/}/go.mod): ${why//$'\n'/ }"
  exit 77
}

# need_module NAME: the module that pins a program of no control plane can be had with this Go, or exits.
need_module() {
  local module why
  module=$(module_of "$1")
  why=$(cd "$module" && "$go" list -find "${package_of[$1]}" 2>&1) && return
  say "skipped: no $1 here (${module#"$PWD"/}/go.mod): ${why//$'\n'/ }"
  exit 77
}

# module_folder MODULE PATH: the folder of the Go module PATH in Go's module cache.
module_folder() {
  (cd "$modules/$1" && "$go" mod download "$2" >&2 && "$go" list -m -f '{{.Dir}}' "$2") ||
    die "no $2 (see above)"
}

# crd_file NAME: the path of a CustomResourceDefinition of the Prometheus operator, of the Gateway API or
# of Karpenter's provider kwok, in Go's module cache.
crd_file() {
  local file
  find_go "CRD of $1"
  case $1 in
    httproutes | backendtlspolicies | gateways)
      file=$(module_folder gateway sigs.k8s.io/gateway-api)
      file=$file/config/crd/standard/gateway.networking.k8s.io_$1.yaml
      ;;
    kwoknodeclasses)
      file=$(module_folder karpenter sigs.k8s.io/karpenter)
      file=$file/kwok/apis/crds/karpenter.kwok.sh_$1.yaml
      ;;
    *)
      file=$(module_folder prometheus github.com/prometheus-operator/prometheus-operator)
      file=$file/example/prometheus-operator-crd/monitoring.coreos.com_$1.yaml
      ;;
  esac
  [ -f "$file" ] || die "no CRD '$1'; two are: servicemonitors, httproutes"
  printf '%s\n' "$file"
}

# chart_folder NAME: the Helm chart of Kueue or Karpenter, in Go's module cache.
chart_folder() {
  find_go "chart of $1"
  case $1 in
    kueue) printf '%s/charts/kueue\n' "$(module_folder kueue sigs.k8s.io/kueue)" ;;
    karpenter) printf '%s/kwok/charts\n' "$(module_folder karpenter sigs.k8s.io/karpenter)" ;;
    *) die "no chart '$1'; one of: kueue karpenter" ;;
  esac
}

# link_flags NAME: linker flags that embed the version in each program.
link_flags() {
  local version kube=k8s.io/component-base/version client=k8s.io/client-go/pkg/version each
  version=$(cd "$(module_of "$1")" && "$go" list -f '{{.Module.Version}}' "${package_of[$1]}")
  printf '%s' '-s -w'
  case $1 in
    kube*)
      for each in "$kube" "$client"; do
        printf ' -X %s.gitVersion=%s -X %s.gitMajor=1 -X %s.gitMinor=%s' "$each" "$version" \
          "$each" "$each" "$(cut -d. -f2 <<<"$version")"
      done
      ;;
    containerd* | ctr) printf ' -X github.com/containerd/containerd/v2/version.Version=%s' "$version" ;;
    crane) printf ' -X github.com/google/go-containerregistry/cmd/crane/cmd.Version=%s' "$version" ;;
    kueue) printf ' -X sigs.k8s.io/kueue/pkg/version.GitVersion=%s' "$version" ;;
    karpenter) printf ' -X sigs.k8s.io/karpenter/pkg/operator.Version=%s' "${version#v}" ;;
    helm) printf ' -X helm.sh/helm/v3/internal/version.version=%s' "$version" ;;
    kustomize) printf ' -X sigs.k8s.io/kustomize/api/provenance.version=%s' "$version" ;;
  esac
}

build_binaries() {
  local name began count=0 folder
  find_go "$*"
  for name in "$@"; do
    if of_version "$name"; then need_version && break; fi
  done
  for name in "$@"; do
    case $name in kueue | karpenter) need_module "$name" ;; esac
  done
  say "building $* (once; the first time takes some minutes)"
  for name in "$@"; do
    count=$((count + 1))
    folder=$(cache_of "$name")
    mkdir -p "$folder"
    exec 8>"$folder/.lock"
    flock -n 8 || { say "waiting for another build in $folder" && flock 8; }
    [ -x "$folder/$name" ] && continue
    began=$SECONDS
    say "($count of $#) ${package_of[$name]}"
    (cd "$(module_of "$name")" && CGO_ENABLED=0 "$go" build -trimpath -ldflags "$(link_flags "$name")" \
      -o "$folder/$name.new" "${package_of[$name]}") || die "building $name failed (see above)"
    mv "$folder/$name.new" "$folder/$name"
    say "($count of $#) $name built in $((SECONDS - began)) s"
  done
  exec 8>&-
}
