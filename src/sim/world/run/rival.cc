#include "sim/world/run/rival.h"

#include <fmt/format.h>

#include <algorithm>

#include "scheduling/framework.h"

namespace nos::sim {

void Rival::Schedule() {
  const auto when = env_.faults.Next(env_.faults.rates().rival_binds_per_hour, env_.random);
  if (!when) return;
  env_.queue.At(*when, [this] {
    Bind();
    Schedule();
  });
}

void Rival::Bind() {
  const auto pods = view_.Pods();
  std::vector<std::shared_ptr<const cluster::Pod>> waiting;
  std::ranges::copy_if(pods, std::back_inserter(waiting), [](const auto& pod) {
    return pod->node_name.empty() && !pod->Finished() && !pod->meta.deleted && pod->claims.empty();
  });
  if (waiting.empty()) return;
  const auto& pod = waiting[env_.random.Below(waiting.size())];
  const auto snapshot = cluster::ClusterSnapshot::Build(view_.Nodes(), pods, env_.catalogue);
  const auto decision = framework_.Schedule(*pod, snapshot, {});
  if (decision.node == nullptr || !env_.faults.Strike(1)) return;
  const std::string& node = decision.node->node->meta.name;
  checks_.OnRivalBinding(node);
  const Status bound = view_.client().Bind(pod->meta.ns, pod->meta.name, node, pod->meta.uid);
  env_.log.Note("rival", fmt::format("binds {} to {}: {}", pod->Key(), node, bound.ToString()));
}

}  // namespace nos::sim
