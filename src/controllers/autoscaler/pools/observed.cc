#include "controllers/autoscaler/pools/observed.h"

#include <algorithm>
#include <utility>

#include "cluster/node_template.h"

namespace nos::controllers {

ObservedPool* ObservedCluster::Find(const std::string& name) {
  const auto found = std::ranges::find_if(
      pools, [&](const ObservedPool& pool) { return pool.pool->meta.name == name; });
  return found == pools.end() ? nullptr : &*found;
}

const ObservedPool* ObservedCluster::Find(const std::string& name) const {
  return const_cast<ObservedCluster*>(this)->Find(name);
}

std::shared_ptr<const cluster::NodePool> WithRecordedTemplate(const ObservedPool& pool) {
  if (!pool.as_read->learns) return pool.as_read;
  PoolMemory& memory = *pool.memory;
  if (memory.described_of == pool.as_read && memory.described->learned == memory.learned) {
    return memory.described;
  }
  cluster::NodePool learned = *pool.as_read;
  learned.learned = memory.learned;
  memory.described_of = pool.as_read;
  memory.described =
      std::make_shared<const cluster::NodePool>(cluster::WithTemplate(std::move(learned)));
  return memory.described;
}

bool IsRequested(const Removal& removal, const PoolMemory& pool) {
  if (removal.state != Removal::State::kAsked) return false;
  const int32_t left = removal.wanted.value_or(kRemovalRequested);
  return left >= kRemovalRequested || (pool.scale && pool.scale->wanted <= left);
}

const kube::Resource& PoolResource() {
  static const kube::Resource kPools{
      std::string(cluster::kPoolGroup), std::string(cluster::kPoolVersion),
      std::string(cluster::kNodePools), std::string(cluster::kNodePool), false};
  return kPools;
}

}  // namespace nos::controllers
