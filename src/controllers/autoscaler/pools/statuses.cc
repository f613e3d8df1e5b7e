#include "controllers/autoscaler/pools/statuses.h"

#include <utility>

#include "controllers/autoscaler.h"

namespace nos::controllers {
namespace {

// Used if the new spec cannot be read: the pool as it was, with the status that was written.
cluster::NodePool LeftAsItWas(cluster::NodePool pool, const PoolStatus& status,
                              const Json& written) {
  pool.meta.resource_version = FindString(written, "metadata", "resourceVersion");
  pool.nodes = status.nodes;
  pool.wanted = status.wanted;
  pool.asked = status.asked;
  pool.failures = status.failures;
  pool.closed_until = status.closed_until;
  pool.learned = status.learned;
  std::erase_if(pool.conditions, [](const auto& known) { return known.type == kPoolReady; });
  pool.conditions.push_back(status.ready);
  return pool;
}

}  // namespace

std::vector<std::shared_ptr<const cluster::NodePool>> PoolStatuses::Current(
    const cluster::ClusterContext& context) {
  std::vector<std::shared_ptr<const cluster::NodePool>> pools;
  for (const auto& [name, pool] : context.pools.rows()) pools.push_back(pool);
  return written_.Newest(std::move(pools));
}

Status PoolStatuses::Write(const ScalingCycle& cycle, ObservedPool& pool) {
  Json patch = PoolStatusPatch(*pool.as_read, pool.state.status);
  if (patch.is_null()) return Status::Ok();
  const std::string name = pool.as_read->meta.name;
  if (!pool.pool->meta.uid.empty()) MakeObject(patch, "metadata")["uid"] = pool.pool->meta.uid;
  const Result<Json> answer =
      cycle.client.Patch(PoolResource(), "", name, kube::PatchType::kMerge, patch, "status");
  if (!answer.ok()) {
    const bool gone = answer.status().code() == Code::kNotFound;
    return gone ? Status::Ok() : answer.status();
  }
  auto written = std::make_shared<cluster::NodePool>();
  if (!cluster::ReadNodePool(*answer, *written).ok()) {
    *written = LeftAsItWas(*pool.as_read, pool.state.status, *answer);
  }
  pool.as_read = written;
  written_.Wrote(std::move(written));
  pool.pool = pool.state.now.pool = WithRecordedTemplate(pool);
  return Status::Ok();
}

}  // namespace nos::controllers
