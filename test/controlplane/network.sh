# A network of its own for a control plane, a real node and its pods: pods have addresses, Services are
# reached by kube-proxy, names of Services are answered by dnsmasq. Everything is in a network namespace
# without links to others, so it disturbs no other test and ends with the test. Sourced after check.sh.
#
#   enter_network COMMAND...  replaces the shell by the command, inside a new namespace
#   start_network NODE DIR    serves Services and their names, by the control plane in $dir
#
# In between: own_plane with plane_flags in NOS_FLAGS_KUBE_APISERVER, and kubelet.sh with
# NOS_NODE_PODS=$pods_network.
# shellcheck shell=bash disable=SC2034,SC2154
readonly node_address=10.88.0.1 pods_network=10.88.1.0/24

# why_no_network: prints the reason and succeeds if this machine cannot have one.
why_no_network() {
  local each
  for each in ip iptables dnsmasq jq; do
    command -v "$each" >/dev/null ||
      { echo "no $each here (Debian: apt-get install iproute2 iptables dnsmasq-base jq)" && return; }
  done
  [ -x /usr/lib/cni/ptp ] || { echo "no /usr/lib/cni/ptp here (Debian: apt-get install containernetworking-plugins)" && return; }
  unshare --net true 2>/dev/null || { echo "no namespaces of networks can be made" && return; }
  return 1
}

enter_network() {
  # The bridge is only there to have an address, and a route for those of Services, which the rules replace.
  # shellcheck disable=SC2016 # the inner shell's
  exec unshare --net sh -euc 'ip link set lo up
    ip link add node type bridge
    ip address add "$1/32" dev node
    ip link set node up
    ip route add default dev node
    shift
    exec "$@"' sh "$node_address" "$@"
}

# Pods reach the API server as the Service "kubernetes"; the API server reaches the kubelet for logs.
plane_flags() {
  printf '%s ' --bind-address=0.0.0.0 --advertise-address="$node_address" --endpoint-reconciler-type=lease \
    --kubelet-preferred-address-types=InternalIP \
    --kubelet-client-certificate="$dir/pki/kubeconfig.crt" --kubelet-client-key="$dir/pki/kubeconfig.key"
}

start_network() {
  local node=$1 folder=$2
  mkdir -p "$folder/names"
  cat >"$folder/kube-proxy.yaml" <<Y
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
clientConnection: {kubeconfig: $dir/kubeconfig}
hostnameOverride: $node
clusterCIDR: $pods_network
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
healthzBindAddress: 127.0.0.1:10256
metricsBindAddress: 127.0.0.1:10249
Y
  setpriv --pdeathsig TERM "$("$controlplane" binary kube-proxy)" --config "$folder/kube-proxy.yaml" \
    >"$folder/kube-proxy.log" 2>&1 &
  pid[kube-proxy]=$!
  setpriv --pdeathsig TERM dnsmasq --keep-in-foreground --user=root --conf-file=/dev/null --pid-file= --no-resolv \
    --no-hosts --listen-address="$node_address" --bind-interfaces --local=/cluster.local/ \
    --hostsdir="$folder/names" --log-facility="$folder/dnsmasq.log" &
  pid[dnsmasq]=$!
  # dnsmasq sees each new file.
  setpriv --pdeathsig TERM "$kubectl" get services -A --watch --no-headers \
    -o 'custom-columns=:.metadata.namespace,:.metadata.name,:.spec.clusterIP' >"$folder/services" 2>&1 &
  pid[services]=$!
  tail -n +1 -f --pid="${pid[services]}" "$folder/services" | while read -r namespace name address; do
    [ "$address" = None ] || echo "$address $name.$namespace.svc.cluster.local" >"$folder/names/$namespace.$name"
  done &
  pid[names]=$!
  within 60 curl -fsS http://127.0.0.1:10256/healthz
}
