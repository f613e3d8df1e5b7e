#include "controllers/autoscaler/pools/state.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/back_off.h"
#include "base/text.h"
#include "cluster/annotations.h"
#include "cluster/node_template.h"
#include "cluster/resources.h"
#include "controllers/autoscaler.h"
#include "controllers/events.h"

namespace nos::controllers {
namespace {

using cluster::Condition;
using cluster::NodePool;

constexpr int32_t kMaxFailures = 30;
constexpr size_t kMaxText = 500;  // bytes of text from other systems
constexpr size_t kMaxNamed = 3;   // nodes
constexpr std::string_view kCordon = "node.kubernetes.io/unschedulable";
constexpr const char* kScaleFailed = "ScaleFailed";

Duration ClosedFor(int32_t failures, const PoolTimeouts& timeouts) {
  return BackOff{timeouts.backoff, timeouts.max_backoff}.After(failures);
}

// Copies the status and clamps values that cannot be true.
PoolStatus Believable(const NodePool& pool, const PoolTimeouts& timeouts, Time now) {
  PoolStatus status;
  status.wanted = std::clamp(pool.wanted, 0, cluster::kMaxPoolNodes);
  status.asked = pool.asked;
  if (status.asked && *status.asked > now) status.asked = now;
  status.failures = std::clamp(pool.failures, 0, kMaxFailures);
  status.closed_until = pool.closed_until;
  if (status.closed_until) {
    status.closed_until = std::min(*status.closed_until, now + timeouts.max_backoff);
  }
  return status;
}

void Close(const PoolTimeouts& timeouts, Time now, PoolState& state) {
  PoolStatus& status = state.status;
  status.failures = std::min(status.failures + 1, kMaxFailures);
  status.closed_until = now + ClosedFor(status.failures, timeouts);
  state.failed = true;
}

// True if a node that was created since the last request does not match its pool although its start
// time is over.
bool MadeInVain(const PoolSeen& seen, const PoolStatus& status, Duration timeout, Time now) {
  if (!status.asked || status.closed_until) return false;
  const auto is_new = [&](const PoolNodes::Wrong& node) {
    return node.created <= now && node.created + timeout >= *status.asked;
  };
  return std::ranges::any_of(seen.nodes.wrong, is_new) ||
         std::ranges::any_of(seen.nodes.less, is_new) ||
         std::ranges::any_of(seen.nodes.closed, is_new);
}

// Updates status.asked and the failure count. Returns true if nodes are late.
bool UpdateFailures(const PoolSeen& seen, int missing, const PoolTimeouts& timeouts, Time now,
                    PoolState& state) {
  const NodePool& pool = *seen.pool;
  PoolStatus& status = state.status;
  const bool awaits = missing > 0 || seen.nodes.starting > 0;
  if (status.closed_until && *status.closed_until <= now) {
    status.closed_until.reset();
    if (awaits) status.asked = now;  // the next attempt starts now
  }
  // Checked before all nodes have arrived: other requests may keep the pool growing, and a pool
  // whose new nodes cannot run the pending pods would otherwise create more and more of them.
  if (MadeInVain(seen, status, ProvisionTimeoutOf(pool, timeouts), now))
    Close(timeouts, now, state);
  if (!awaits) {
    if (status.asked && !status.closed_until) status.failures = 0;
    status.asked.reset();
    return false;
  }
  // If no node arrives, further requests do not extend the time limit.
  const bool delivers = status.asked && seen.nodes.newest >= *status.asked;
  const int32_t wanted = seen.wanted.value_or(0);
  const Time asked = !status.asked || (delivers && wanted > pool.wanted) ? now : *status.asked;
  status.asked = asked;
  // A node that is being removed and still exists may count towards the wanted nodes.
  const bool late = missing > seen.nodes.going && now - asked > ProvisionTimeoutOf(pool, timeouts);
  if (late && !status.closed_until) Close(timeouts, now, state);
  if (!late) return false;
  const int32_t there = seen.nodes.Present() + seen.nodes.going;
  const int32_t back = std::max(there, std::min(pool.min, wanted));
  if (back < wanted) state.write_back = back;
  return true;
}

std::string WrongText(const std::vector<PoolNodes::Wrong>& wrong) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < std::min(wrong.size(), kMaxNamed); ++i) {
    parts.push_back(fmt::format("node {} {}", wrong[i].name, wrong[i].why));
  }
  if (wrong.size() > kMaxNamed) parts.push_back(fmt::format("{} more", wrong.size() - kMaxNamed));
  return Join(parts, "; ");
}

std::string WhyClosed(const PoolSeen& seen, const PoolStatus& status) {
  if (!seen.error.ok())
    return "the scale target of the pool cannot be read (see its condition Ready)";
  if (!status.closed_until) return "";
  return fmt::format("the nodes that it was asked for did not arrive; the next attempt is at {}",
                     FormatTime(*status.closed_until));
}

Condition ReadyOf(const PoolSeen& seen, const PoolStatus& status) {
  const auto is = [](const char* state, const char* reason, const std::string& message) {
    return Condition{kPoolReady, state, reason, Shortened(message, 2 * kMaxText), {}};
  };
  const std::string wrong = WrongText(seen.nodes.wrong);
  const std::string less = WrongText(seen.nodes.less);
  const std::string shut = WrongText(seen.nodes.closed);
  if (!seen.problem.empty()) return is("False", "Invalid", seen.problem);
  if (!seen.error.ok())
    return is("False", kScaleFailed,
              "Failed to read the desired number of Nodes: " +
                  Shortened(seen.error.ToString(), kMaxText));
  if (status.closed_until) {
    std::vector<std::string> why;
    if (!wrong.empty()) why.push_back(wrong);
    if (!less.empty()) why.push_back("compared with earlier Nodes, " + less);
    if (!shut.empty()) why.push_back(shut);
    return is("False", events::kReasonNotDelivered,
              events::NotDeliveredText(*status.closed_until, status.failures, Join(why, "; ")));
  }
  if (!cluster::IsDescribed(*seen.pool)) {
    return is("False", kNoTemplate, cluster::WhyNotDescribed());
  }
  if (!wrong.empty())
    return is("True", "WrongNodes", "Correct the NodePool or its Nodes: " + wrong);
  if (status.wanted > seen.pool->max) {
    return is("True", "AboveMaximum",
              fmt::format("Requesting no more Nodes: {} are requested, and spec.max is {}",
                          status.wanted, seen.pool->max));
  }
  return is("True", "Ready", "");
}

bool SaysTheSame(const Condition& known, const Condition& wanted) {
  if (known.status != wanted.status || known.reason != wanted.reason) return false;
  // Ignores the message of ScaleFailed: errors contain ports and times that change with each
  // attempt.
  return known.message == wanted.message || wanted.reason == kScaleFailed;
}

JsonObject JsonOf(const Condition& condition) {
  return {{"type", condition.type},
          {"status", condition.status},
          {"reason", condition.reason},
          {"message", condition.message},
          {"lastTransitionTime", FormatTime(condition.last_transition)}};
}

void PutTime(const char* field, const std::optional<Time>& known, const std::optional<Time>& wanted,
             JsonObject& to) {
  const auto text = [](const std::optional<Time>& time) { return time ? FormatTime(*time) : ""; };
  if (text(known) == text(wanted)) return;
  to[field] = wanted ? Json(text(wanted)) : Json(nullptr);
}

// Minimum that a node must have. If the amount was only recorded from other nodes, a node may have
// slightly less (1/kAlikePart).
Quantity LeastOf(const NodePool& pool, const std::string& name, Quantity amount) {
  if (!pool.learns || !pool.learned) return amount;
  const auto learned = pool.learned->resources.find(name);
  if (learned == pool.learned->resources.end() || learned->second != amount) return amount;
  return amount - Quantity::FromMilli(amount.MilliValue() / cluster::kAlikePart);
}

// Says how the node's GPUs differ from the pool's; "" if they match.
std::string MissingGpus(const cluster::Node& node, const NodePool& pool,
                        const gpu::Catalogue& catalogue) {
  if (pool.gpu.count == 0) return "";
  if (const auto product = node.meta.labels.find(cluster::kProductLabel);
      product != node.meta.labels.end()) {
    const gpu::Model* model = catalogue.FindByProduct(product->second);
    const bool same = pool.gpu.model.empty()
                          ? product->second == pool.gpu.product
                          : product->second == pool.gpu.model ||
                                (model != nullptr && model->name() == pool.gpu.model);
    if (!same) {
      return fmt::format("has {}, but the pool requires {}", Shortened(product->second, 80),
                         pool.gpu.model.empty() ? pool.gpu.product : pool.gpu.model);
    }
  }
  if (pool.gpu.partitioning == cluster::SharingMode::kNone) {
    const auto found = node.allocatable.find(cluster::kWholeGpuResource);
    const int64_t has = found == node.allocatable.end() ? 0 : found->second.Value();
    if (has >= pool.gpu.count) return "";
    return fmt::format("has {} of {}, but the pool requires {}", has, cluster::kWholeGpuResource,
                       pool.gpu.count);
  }
  const cluster::NodeGpus gpus = cluster::ReadNodeGpus(node, catalogue);
  const auto reported = std::ranges::count_if(gpus.gpus, &cluster::Gpu::reported);
  if (reported >= pool.gpu.count) return "";
  return fmt::format("has {} GPUs with sharing mode {}, but the pool requires {}", reported,
                     cluster::NameOf(pool.gpu.partitioning), pool.gpu.count);
}

}  // namespace

Duration ProvisionTimeoutOf(const NodePool& pool, const PoolTimeouts& timeouts) {
  return std::max<Duration>(timeouts.min_timeout, 2 * std::chrono::seconds(pool.start_seconds));
}

MissingRequirements MissingRequirementsOf(const cluster::Node& node, const NodePool& pool,
                                          const gpu::Catalogue& catalogue) {
  MissingRequirements missing;
  const Condition* ready = cluster::FindCondition(node.conditions, "Ready");
  if (ready == nullptr || ready->status != "True") missing.readiness = "is not Ready";
  for (const cluster::Taint& taint : node.taints) {
    const bool known = std::ranges::any_of(pool.taints, [&](const cluster::Taint& own) {
      return own.key == taint.key && own.effect == taint.effect;
    });
    if (known || taint.key == kCordon || taint.effect == "PreferNoSchedule") continue;
    if (missing.readiness.empty()) {
      missing.readiness = fmt::format("has the taint {}", Shortened(taint.key, 80));
    }
  }
  missing.substance = MissingGpus(node, pool, catalogue);
  for (const auto& [name, amount] : pool.resources) {
    const auto found = node.allocatable.find(name);
    const Quantity has = found == node.allocatable.end() ? Quantity() : found->second;
    if (has >= LeastOf(pool, name, amount) || !missing.substance.empty()) continue;
    missing.substance = fmt::format("has {} of {} for pods, but the pool requires {}",
                                    has.ToString(), name, amount.ToString());
  }
  return missing;
}

const MissingRequirements& MissingRequirementsCache::Of(
    const std::shared_ptr<const cluster::Node>& node, const std::shared_ptr<const NodePool>& pool) {
  Known& known = known_[node->meta.name];
  known.round = round_;
  if (known.node == node && known.pool == pool) return known.missing;
  ++reads_;
  known.node = node;
  known.pool = pool;
  known.missing = MissingRequirementsOf(*node, *pool, catalogue_);
  return known.missing;
}

void MissingRequirementsCache::Forget() {
  std::erase_if(known_, [&](const auto& one) { return one.second.round != round_; });
  ++round_;
}

PoolState StateOf(const PoolSeen& seen, const PoolTimeouts& timeouts, Time now) {
  const NodePool& pool = *seen.pool;
  PoolState state;
  PoolStatus& status = state.status;
  status = Believable(pool, timeouts, now);
  status.nodes = seen.nodes.Present();
  if (seen.wanted) status.wanted = std::clamp(*seen.wanted, 0, INT32_MAX);
  // Clamped: a webhook or scale object may report any number.
  int missing = std::clamp(status.wanted - seen.nodes.Present(), 0, cluster::kMaxPoolNodes);
  if (seen.wanted && UpdateFailures(seen, missing, timeouts, now, state)) missing = 0;
  if (pool.learns) status.learned = pool.learned;
  status.ready = ReadyOf(seen, status);
  const Condition* known = cluster::FindCondition(pool.conditions, kPoolReady);
  const bool lasts = known != nullptr && known->status == status.ready.status;
  status.ready.last_transition = lasts ? known->last_transition : now;
  state.now = {seen.pool, seen.nodes.there, missing + seen.nodes.starting, WhyClosed(seen, status)};
  return state;
}

Json PoolStatusPatch(const NodePool& known, const PoolStatus& wanted) {
  JsonObject status;
  const bool is_first = known.conditions.empty();  // the first status also shows zeros
  const auto put = [&](const char* field, int32_t was, int32_t is) {
    if (is_first || was != is) status[field] = is;
  };
  put("nodes", known.nodes, wanted.nodes);
  put("wanted", known.wanted, wanted.wanted);
  put("failures", known.failures, wanted.failures);
  PutTime("asked", known.asked, wanted.asked, status);
  PutTime("closedUntil", known.closed_until, wanted.closed_until, status);
  if (known.learned != wanted.learned) {
    status["template"] = cluster::PatchOf(known.learned, wanted.learned);
  }
  const Condition* ready = cluster::FindCondition(known.conditions, kPoolReady);
  if (ready == nullptr || !SaysTheSame(*ready, wanted.ready)) {
    JsonArray conditions;
    for (const Condition& condition : known.conditions) {
      if (condition.type != kPoolReady) conditions.emplace_back(JsonOf(condition));
    }
    conditions.emplace_back(JsonOf(wanted.ready));
    status["conditions"] = std::move(conditions);
  }
  return status.empty() ? Json() : Json{{"status", std::move(status)}};
}

}  // namespace nos::controllers
