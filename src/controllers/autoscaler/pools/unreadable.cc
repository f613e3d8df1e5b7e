#include "controllers/autoscaler/pools/unreadable.h"

#include <utility>

#include "base/text.h"
#include "controllers/autoscaler/pools/observed.h"
#include "controllers/events.h"

namespace nos::controllers {
namespace {

constexpr size_t kMaxText = 1000;  // bytes, of the message of a condition

// Returns false if the write must be repeated.
bool WriteInvalid(const ScalingCycle& cycle, const std::string& pool, const std::string& why) {
  const Json ready{{"type", kPoolReady},
                   {"status", "False"},
                   {"reason", "Invalid"},
                   {"message", Shortened(why, kMaxText)},
                   {"lastTransitionTime", FormatTime(cycle.now)}};
  const Json patch{{"status", JsonObject{{"conditions", JsonArray{ready}}}}};
  const Result<Json> answer =
      cycle.client.Patch(PoolResource(), "", pool, kube::PatchType::kMerge, patch, "status");
  return answer.ok() || answer.status().code() == Code::kNotFound;
}

}  // namespace

void UnreadablePools::Observe(const ScalingCycle& cycle, const cluster::ClusterContext& context) {
  const auto found = cycle.view.context->Problems(cluster::kNodePool);
  std::map<std::string, Problem> problems;
  for (const auto& [name, why] : found) {
    Problem& each = problems[name];
    const auto known = problems_.find(name);
    const cluster::NodePool* last = context.pools.Find(name);
    if (known != problems_.end() && known->second.why == why) {
      each = known->second;
    } else {
      each.why = why;
      cluster::NodePool pool;
      pool.meta.name = name;
      if (last != nullptr) pool.meta.uid = last->meta.uid;
      events_.Add(events::Unreadable(pool, why));
    }
    // If the pool could be read before, its status carries this problem (ProblemOf).
    if (each.published || cycle.now < each.again) continue;
    each.published = last != nullptr || WriteInvalid(cycle, name, why);
    each.again = cycle.now + again_;
  }
  problems_ = std::move(problems);
}

std::string UnreadablePools::ProblemOf(const std::string& pool) const {
  const auto found = problems_.find(pool);
  return found == problems_.end() ? "" : std::string(events::kIgnored) + found->second.why;
}

}  // namespace nos::controllers
