#include "scheduling/pod_kind.h"

#include <algorithm>

#include "base/key_writer.h"

namespace nos::scheduling {
namespace {

using cluster::Pod;

class Writer : public KeyWriter<Writer> {
 public:
  using KeyWriter::Add;
  void Add(const Quantity& quantity) {
    AddRaw({reinterpret_cast<const char*>(&quantity), sizeof quantity});
  }
  void Add(const cluster::SelectorRequirement& r) { All(r.key, r.op, r.values); }
  void Add(const cluster::LabelSelector& s) { All(s.match_labels, s.match_expressions); }
  void Add(const cluster::NodeSelectorTerm& t) { All(t.match_expressions, t.match_fields); }
  void Add(const cluster::PreferredNodeTerm& t) { All(t.weight, t.term); }
  void Add(const cluster::NodeAffinity& a) { All(a.required, a.preferred); }
  void Add(const cluster::PodAffinityTerm& t) {
    All(t.selector, t.namespaces, t.namespace_selector, t.topology_key);
  }
  void Add(const cluster::PreferredPodTerm& t) { All(t.weight, t.term); }
  void Add(const cluster::PodAffinity& a) { All(a.required, a.preferred); }
  void Add(const cluster::TopologySpreadConstraint& c) {
    All(c.max_skew, c.topology_key, c.when_unsatisfiable, c.selector, c.min_domains,
        c.node_affinity_policy, c.node_taints_policy, c.match_label_keys);
  }
  void Add(const cluster::Toleration& t) { All(t.key, t.op, t.value, t.effect); }
  void Add(const cluster::HostPort& p) { All(p.port, p.ip, p.protocol); }
  void Add(const cluster::Container& c) {
    All(c.requests, c.limits, c.restart_always, c.image, c.host_ports);
  }
  void Add(const cluster::Volume& v) {
    All(static_cast<int64_t>(v.kind), v.source, v.read_only, v.monitors);
    if (v.kind == cluster::Volume::Kind::kEphemeral) Add(v.name);
  }
  // Claims that are made from one template ask for the same.
  void Add(const cluster::PodClaim& c) {
    All(c.name, c.template_name.empty() ? c.claim : c.template_name, c.unneeded);
  }
  void Add(const cluster::OwnerReference& o) {
    if (o.controller) All(o.api_version, o.kind, o.name);
  }
};

}  // namespace

std::string KindBesideClaims(const Pod& pod) {
  Writer key;
  key.All(pod.meta.ns, pod.meta.labels, pod.meta.owners, pod.node_name, pod.node_selector,
          pod.node_affinity, pod.pod_affinity, pod.pod_anti_affinity, pod.spread, pod.tolerations,
          pod.containers, pod.init_containers, pod.overhead, pod.requests, pod.limits, pod.volumes,
          !pod.extended_claim.empty());
  // The claims of ephemeral volumes are named after the pod.
  const bool own_claims = std::ranges::any_of(pod.volumes, [](const cluster::Volume& volume) {
    return volume.kind == cluster::Volume::Kind::kEphemeral;
  });
  if (own_claims) key.All(pod.meta.name, pod.meta.uid);
  return key.Take();
}

std::string KindOf(const Pod& pod) {
  std::string kind = KindBesideClaims(pod);
  if (pod.claims.empty()) return kind;
  Writer claims;
  claims.Add(pod.claims);
  return kind + claims.Take();
}

}  // namespace nos::scheduling
