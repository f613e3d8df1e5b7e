# Starts, watches and stops the processes of a control plane in $dir. Sourced by
# script/controlplane.
# shellcheck shell=bash disable=SC2154

# A test may run fewer components, in this order with etcd and kube-apiserver first, and pass
# further flags: for kube-scheduler in $NOS_FLAGS_KUBE_SCHEDULER.
read -ra components <<<"${NOS_CONTROLPLANE_ONLY:-etcd kube-apiserver kube-controller-manager kube-scheduler kwok}"
marker=.nos-controlplane

k() {
  need_binaries kubectl
  "${path_of[kubectl]}" --kubeconfig "$dir/kubeconfig" "$@"
}
port_of() { cat "$dir/$1.port"; }

# running NAME: its process is alive (a zombie has no command line) and belongs to this directory.
running() {
  local pid
  pid=$(cat "$dir/$1.pid" 2>/dev/null) || return 1
  tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline" | grep -qF -- "$dir/"
}

# free_port: a port without a listener, below the range for outgoing connections.
free_port() {
  local port
  for _ in $(seq 200); do
    port=$((20000 + RANDOM % 12000))
    grep -qiE "^ *[0-9]+: [0-9A-F]+:$(printf %04X "$port") " /proc/net/tcp /proc/net/tcp6 2>/dev/null ||
      { printf '%s\n' "$port" && return; }
  done
  die "no free port between 20000 and 32000"
}

choose_ports() {
  local name
  for name in "${components[@]}"; do free_port >"$dir/$name.port"; done
  [ -z "$port" ] || printf '%s\n' "$port" >"$dir/kube-apiserver.port"
}

# command_of NAME: stores its command line in $argv.
command_of() {
  local pki=$dir/pki
  local served=(--bind-address=127.0.0.1 --secure-port="$(port_of "$1")"
    --tls-cert-file="$pki/server.crt" --tls-private-key-file="$pki/server.key")
  local own=$dir/$1.kubeconfig
  local led=(--kubeconfig="$own" --authentication-kubeconfig="$own" --authorization-kubeconfig="$own"
    --leader-elect=false)
  case $1 in
    etcd)
      argv=(--data-dir="$dir/etcd" --unsafe-no-fsync --listen-peer-urls=http://127.0.0.1:0
        --listen-client-urls="http://127.0.0.1:$(port_of etcd)"
        --advertise-client-urls="http://127.0.0.1:$(port_of etcd)" --log-level=warn)
      ;;
    kube-apiserver)
      argv=("${served[@]}" --etcd-servers="http://127.0.0.1:$(port_of etcd)"
        "--authorization-mode=Node,RBAC" --client-ca-file="$pki/ca.crt" --allow-privileged
        --service-account-issuer=https://kubernetes.default.svc
        --service-account-key-file="$pki/service-accounts.pub"
        --service-account-signing-key-file="$pki/service-accounts.key"
        --advertise-address=127.0.0.1 --endpoint-reconciler-type=none
        --shutdown-watch-termination-grace-period=1s
        --audit-policy-file="$PWD/test/controlplane/audit-policy.yaml"
        --audit-log-path="$dir/audit.log" --audit-log-maxsize=100 --audit-log-maxbackup=1)
      ;;
    kube-controller-manager)
      argv=("${served[@]}" "${led[@]}" --use-service-account-credentials
        --root-ca-file="$pki/ca.crt"
        --service-account-private-key-file="$pki/service-accounts.key")
      ;;
    kube-scheduler) argv=("${served[@]}" "${led[@]}") ;;
    kwok)
      argv=(--kubeconfig="$own" --server-address="127.0.0.1:$(port_of kwok)"
        --manage-all-nodes=false --node-lease-duration-seconds=40
        --manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake)
      ;;
  esac
  need_binaries "$1"
  local further=NOS_FLAGS_${1//-/_}
  further=${further^^}
  read -ra further <<<"${!further:-}"
  argv=("${path_of[$1]}" "${argv[@]}" "${further[@]}")
}

# start NAME: starts it unless it runs. In its own session, so that a Ctrl-C in the terminal does
# not reach it.
start() {
  local argv
  running "$1" && return
  command_of "$1"
  HOME=$dir setsid "${argv[@]}" >>"$dir/$1.log" 2>&1 </dev/null 9>&- &
  printf '%s\n' $! >"$dir/$1.pid"
}

# stop NAME SIGNAL: returns after it has ended; kills it if it ignores SIGTERM for 20 s.
stop() {
  local pid deadline=$((SECONDS + 20)) signal=$2
  while running "$1"; do
    pid=$(cat "$dir/$1.pid")
    [ -z "$signal" ] || kill "-$signal" "$pid" 2>/dev/null || true
    signal=''
    [ "$SECONDS" -lt "$deadline" ] || signal=KILL
    sleep 0.05
  done
  rm -f "$dir/$1.pid"
}

# wait_until NAME URL_PATH [SERVER]: polls the API server, or another server, until it answers well.
wait_until() {
  local patience=${NOS_CONTROLPLANE_TIMEOUT:-180} answer
  local deadline=$((SECONDS + patience))
  until answer=$(k ${3:+--server "$3"} get --raw "$2" 2>&1); do
    if ! running "$1"; then
      tail -n 20 "$dir/$1.log" >&2
      die "$1 ended instead of getting ready (above: the end of $dir/$1.log)"
    fi
    [ "$SECONDS" -lt "$deadline" ] ||
      die "$1 is not ready after $patience s: $answer (log: $dir/$1.log)"
    sleep 0.1
  done
}

wait_ready() {
  local scheme=https path=/healthz
  case $1 in
    etcd) scheme=http path=/health ;;
    kwok) scheme=http ;;
    kube-apiserver) path=/readyz ;;
  esac
  wait_until "$1" "$path" "$scheme://127.0.0.1:$(port_of "$1")"
}

# Nodes of kwok with free capacity and without taints, like workers that have joined.
add_nodes() {
  local i
  [ "$nodes" -gt 0 ] || return 0
  for ((i = 0; i < nodes; i++)); do
    cat <<EOF
---
apiVersion: v1
kind: Node
metadata:
  name: kwok-$i
  annotations: {kwok.x-k8s.io/node: fake}
  labels: {type: kwok, kubernetes.io/hostname: kwok-$i, kubernetes.io/os: linux, kubernetes.io/arch: amd64}
status:
  capacity: {cpu: "32", memory: 256Gi, pods: "110"}
  allocatable: {cpu: "32", memory: 256Gi, pods: "110"}
EOF
  done | k apply --server-side -f - >/dev/null
  k wait --for=condition=Ready node --selector type=kwok --timeout 60s >/dev/null
}

# Ends the processes of an aborted run. The shell knows its children as soon as they exist; pid
# files are written a little later.
undo() {
  local pids
  mapfile -t pids < <(jobs -p)
  [ ${#pids[@]} -gt 0 ] || return 0
  say "stopping what was started"
  kill -KILL "${pids[@]}" 2>/dev/null || true
  wait "${pids[@]}" 2>/dev/null || true
}

up() {
  local name began alive=0
  need_binaries "${components[@]}" kubectl
  began=$SECONDS
  for name in "${components[@]}"; do running "$name" && alive=$((alive + 1)); done
  if [ "$alive" -eq ${#components[@]} ]; then
    say "already running in $dir"
  else
    trap undo EXIT
    trap 'exit 130' INT TERM HUP
    if [ "$alive" -eq 0 ]; then
      clean logs too
      printf '%s' "$kubernetes" >"$dir/kubernetes.version"
      choose_ports
      make_credentials
    fi
    start etcd
    start kube-apiserver
    wait_ready kube-apiserver
    for name in "${components[@]:2}"; do start "$name"; done
    for name in "${components[@]:2}"; do wait_ready "$name"; done
    [[ " ${components[*]} " != *" kube-controller-manager "* ]] ||
      wait_until kube-controller-manager /api/v1/namespaces/default/serviceaccounts/default
    add_nodes
    trap - EXIT INT TERM HUP
    say "ready after $((SECONDS - began)) s; logs are $dir/*.log"
  fi
  printf 'export KUBECONFIG=%q\n' "$dir/kubeconfig"
  say "try: kubectl get nodes; kubectl run hello --image=any; kubectl get pods --watch" \
    "(its end: script/controlplane down$dir_option)"
}

# clean [logs too]. REQUIRES: kwok, etcd and all other components have ended.
clean() {
  local keep=(! -name "$marker")
  [ $# -gt 0 ] || keep+=(! -name '*.log')
  find "$dir" -mindepth 1 -maxdepth 1 "${keep[@]}" -exec rm -rf {} +
}

down() {
  local name
  for name in "${components[@]}"; do stop "$name" KILL; done
  clean
  say "stopped; its logs are in $dir"
}

status() {
  local name pid rc=0 memory
  for name in "${components[@]}"; do
    if running "$name"; then
      pid=$(cat "$dir/$name.pid")
      memory=$(awk '/^VmRSS/ {printf "%d MiB", $2 / 1024}' "/proc/$pid/status")
      printf '%-24s running   pid %-8s port %-6s %s\n' "$name" "$pid" "$(port_of "$name")" "$memory"
    else
      printf '%-24s stopped\n' "$name" && rc=1
    fi
  done
  return "$rc"
}
