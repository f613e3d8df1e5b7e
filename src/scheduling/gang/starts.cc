#include "scheduling/framework.h"
#include "scheduling/gang_starts.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "scheduling/pod_kind.h"

namespace nos::scheduling {

std::vector<std::shared_ptr<const cluster::Pod>> TakeFollowers(GangRefusals& refusals) {
  const auto followers = std::ranges::stable_partition(
      refusals, [](const auto& refusal) { return !MayFollow(*refusal.first); });
  std::vector<std::shared_ptr<const cluster::Pod>> taken;
  for (auto& [member, diagnosis] : followers) taken.push_back(std::move(member));
  refusals.erase(followers.begin(), followers.end());
  return taken;
}

GangStarts StartsOf(std::span<const std::shared_ptr<const cluster::Pod>> members,
                    const GangTies& ties, const cluster::ClusterSnapshot& snapshot,
                    FunctionRef<const Framework&(const cluster::Pod&)> framework_for) {
  std::vector<const cluster::NodeInfo*> nodes;
  nodes.reserve(snapshot.size());
  for (size_t n = 0; n < snapshot.size(); ++n) nodes.push_back(&snapshot.node(n));
  const auto most = static_cast<int64_t>(members.size());
  GangStarts starts;
  std::set<std::string> seen;  // kinds that fit nowhere
  for (size_t m = 0; m < members.size(); ++m) {
    const cluster::Pod& pod = *members[m];
    if (!ties.IsTied(m) || !seen.insert(pod.scheduler_name + " " + KindOf(pod)).second) continue;
    const Framework& framework = framework_for(pod);
    const Cycle cycle = framework.PreFilter(pod, snapshot);
    const cluster::ResourceVector requests = cluster::RequestsOf(pod);
    const bool as_partitioned = framework.partitioned_by() == PartitionedBy::kScheduler;
    starts.domains = ties.Domains(nodes, [&](size_t n) -> int64_t {
      const Plugin* by = nullptr;
      if (framework.Filter(cycle, pod, *nodes[n], &by).fits()) {
        return std::max<int64_t>(CopiesOn(*nodes[n], requests, as_partitioned, most), 1);
      }
      if (by != nullptr) starts.by.insert(by);
      return 0;
    });
    if (!starts.domains.empty()) break;
  }
  return starts;
}

}  // namespace nos::scheduling
