#include "cmd/query/live_objects.h"

#include <algorithm>
#include <string>
#include <utility>

#include "cluster/node_template.h"
#include "cmd/telemetry/read_cluster.h"
#include "controllers/pool_standing.h"

namespace nos::cmd {
namespace {

kube::ReflectorOptions OptionsFor(const std::function<void()>& wake, bool may_be_unknown) {
  kube::ReflectorOptions options;
  options.may_be_unknown = may_be_unknown;
  options.wake = wake;
  return options;
}

kube::Resource QuotaResource(std::string_view plural, std::string_view kind) {
  return {std::string(cluster::kQuotaGroup), std::string(cluster::kQuotaVersion),
          std::string(plural), std::string(kind), true};
}

}  // namespace

LiveObjects::LiveObjects(kube::Client& client, WantedKinds wanted,
                         const std::function<void()>& wake)
    : client_(client),
      nodes_(kube::kNodes, cluster::ReadNode, OptionsFor(wake, false)),
      pods_(kube::kPods, cluster::ReadPod, OptionsFor(wake, false)) {
  if (wanted.quotas) {
    quotas_.emplace(QuotaResource("elasticquotas", cluster::kElasticQuota),
                    cluster::ReadElasticQuota, OptionsFor(wake, true));
    composite_quotas_.emplace(QuotaResource("compositeelasticquotas", cluster::kCompositeQuota),
                              cluster::ReadCompositeElasticQuota, OptionsFor(wake, true));
    claims_.emplace(kResourceClaims, dra::ReadResourceClaim, OptionsFor(wake, true));
  }
  if (wanted.pools) {
    pools_.emplace(
        kube::Resource{std::string(cluster::kPoolGroup), std::string(cluster::kPoolVersion),
                       std::string(cluster::kNodePools), std::string(cluster::kNodePool), false},
        controllers::ReadPoolToReport, OptionsFor(wake, true));
  }
}

template <typename Self, typename Visit>
void LiveObjects::ForEach(Self& self, Visit visit) {
  visit(self.nodes_);
  visit(self.pods_);
  if (self.quotas_) visit(*self.quotas_);
  if (self.composite_quotas_) visit(*self.composite_quotas_);
  if (self.claims_) visit(*self.claims_);
  if (self.pools_) visit(*self.pools_);
}

bool LiveObjects::Pump(Time now) {
  bool changed = false, synced = true;
  ForEach(*this, [&](auto& cache) {
    changed = cache.Pump(client_, now) || changed;
    synced = synced && cache.synced();
  });
  const bool first = synced && !synced_;
  synced_ = synced;
  return synced && (changed || first);
}

Time LiveObjects::NextDue() const {
  Time due = Time::max();
  ForEach(*this, [&](const auto& cache) { due = std::min(due, cache.reflector().NextDue()); });
  return due;
}

Status LiveObjects::Error() const {
  Status error;
  ForEach(*this, [&](const auto& cache) {
    if (error.ok()) error = cache.reflector().last_error();
  });
  return error;
}

LiveCluster LiveObjects::Collect(const gpu::Catalogue& catalogue) const {
  std::vector<std::shared_ptr<const cluster::NodePool>> pools;
  if (pools_)
    pools = cluster::Described(*pools_->Snapshot(), *nodes_.Snapshot(), *pods_.Snapshot());
  LiveCluster live = MakeLiveCluster(*nodes_.Snapshot(), *pods_.Snapshot(), catalogue);
  live.pools = std::move(pools);
  for (const auto* quotas : {&quotas_, &composite_quotas_}) {
    if (!*quotas) continue;
    const auto read = (*quotas)->Snapshot();
    live.quotas.insert(live.quotas.end(), read->begin(), read->end());
  }
  if (claims_) live.claims = *claims_->Snapshot();
  return live;
}

}  // namespace nos::cmd
