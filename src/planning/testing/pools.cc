#include "planning/testing/pools.h"

#include <memory>
#include <utility>

namespace nos::planning::testing {

cluster::NodePool PoolOf(const std::string& name, const std::string& model, int gpus, int cpu,
                         int max, const std::string& price) {
  cluster::NodePool pool;
  pool.meta.name = name;
  pool.gpu.model = model;
  pool.gpu.count = gpus;
  pool.gpu.partitioning = gpus > 0 ? cluster::SharingMode::kMig : cluster::SharingMode::kNone;
  pool.resources = {{"cpu", Quantity::FromValue(cpu)},
                    {"memory", Quantity::FromValue(int64_t{1} << 40)},
                    {"pods", Quantity::FromValue(110)}};
  pool.labels = pool.node_selector = {{"pool", name}};
  pool.max = max;
  pool.price = Quantity::Parse(price).value();
  return pool;
}

NodePoolState Now(cluster::NodePool pool, int nodes, int coming, std::string closed) {
  return {std::make_shared<const cluster::NodePool>(std::move(pool)), nodes, coming,
          std::move(closed)};
}

}  // namespace nos::planning::testing
