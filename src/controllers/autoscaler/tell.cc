// Publishes decisions, Events, conditions of pending pods, and metrics.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "controllers/autoscaler/internal.h"
#include "scheduling/pod_names.h"

namespace nos::controllers {
namespace {

constexpr size_t kMaxText = 1000;       // bytes, of the message of a condition
constexpr size_t kWritesPerCall = 100;  // conditions written in one call
// Minimum interval between writes of a condition of which only the message changed.
constexpr Duration kRefresh = std::chrono::seconds(30);

}  // namespace

kube::ObjectReference ReferenceTo(const cluster::NodePool& pool) {
  return {std::string(cluster::kNodePool), "", pool.meta.name, pool.meta.uid,
          fmt::format("{}/{}", cluster::kPoolGroup, cluster::kPoolVersion)};
}

kube::ObjectReference ReferenceToNode(const std::string& name) { return {"Node", "", name, name}; }

kube::ObjectReference ReferenceTo(const cluster::Pod& pod) {
  return {"Pod", pod.meta.ns, pod.meta.name, pod.meta.uid};
}

void Autoscaler::Impl::Record(ScalingDecision decision, Time now) {
  if (metrics_ != nullptr) metrics_->Count(kScalingDecisions, {{"action", decision.action}});
  decision.message = Shortened(decision.message, kMaxText);
  decision.time = now;
  decision.sequence = ++last_sequence_;
  Log(LogLevel::kInfo, "scaling decision",
      {{"action", decision.action}, {"message", decision.message}});
  decisions_.push_back(std::move(decision));
  if (decisions_.size() > config_.remembered_decisions) decisions_.pop_front();
}

void Autoscaler::Impl::TakeNotes(Look& look) {
  const auto say = [&](const kube::ObjectReference& of, const char* reason, std::string message) {
    telling_.Say({of, kube::EventType::kNormal, reason, std::move(message)});
  };
  const auto say_of_pod = [&](const std::string& key, const char* reason, const std::string& text) {
    const Pod pod = look.view.pods.Get(key);
    if (pod == nullptr) return;
    say(ReferenceTo(*pod), reason, scheduling::NamesOnlyFor(pod->meta.ns, text));
  };
  const std::vector<RelocationNote> notes = relocations_.TakeNotes();
  for (const RelocationNote& note : notes) {
    switch (note.kind) {
      case RelocationNote::Kind::kStarted:
        if (!note.node.empty()) say(ReferenceToNode(note.node), "NodeEmptying", note.message);
        break;
      case RelocationNote::Kind::kHeld:
        break;
      case RelocationNote::Kind::kEvicted:
        say_of_pod(note.pod, "MovedAway", note.message);
        break;
      case RelocationNote::Kind::kMoved:
        if (!note.for_pod.empty()) say_of_pod(note.for_pod, "MadeRoom", note.message);
        break;
      case RelocationNote::Kind::kBadMark:
        telling_.Say({ReferenceToNode(note.node), kube::EventType::kWarning, "BadRemovalMark",
                      note.message});
        break;
      case RelocationNote::Kind::kCalledOff:
        if (!note.node.empty()) say(ReferenceToNode(note.node), "NodeKept", note.message);
        Record(
            {.action = "call-off", .pool = note.pool, .node = note.node, .message = note.message},
            look.now);
        break;
    }
  }
}

void Autoscaler::Impl::NoteUnreadable(const Look& look) {
  const auto found = look.view.around->Problems(cluster::kNodePool);
  std::map<std::string, Unreadable> unreadable;
  for (const auto& [name, why] : found) {
    Unreadable& each = unreadable[name];
    const auto known = unreadable_.find(name);
    const cluster::NodePool* last = around_.pools.Find(name);
    if (known != unreadable_.end() && known->second.why == why) {
      each = known->second;
    } else {
      each.why = why;
      cluster::NodePool pool;
      pool.meta.name = name;
      if (last != nullptr) pool.meta.uid = last->meta.uid;
      telling_.Say({ReferenceTo(pool), kube::EventType::kWarning, "Unreadable",
                    "Ignoring change, keeping last valid state: " + why});
    }
    // If the pool could be read before, LookAtPools writes its status with this problem.
    if (each.told || look.now < each.again) continue;
    each.told = last != nullptr || TellInvalid(look, name, why);
    each.again = look.now + config_.read_again;
  }
  unreadable_ = std::move(unreadable);
}

// Returns false if the write must be repeated.
bool Autoscaler::Impl::TellInvalid(const Look& look, const std::string& pool,
                                   const std::string& why) {
  const Json ready{{"type", kPoolReady},
                   {"status", "False"},
                   {"reason", "Invalid"},
                   {"message", Shortened(why, kMaxText)},
                   {"lastTransitionTime", FormatTime(look.now)}};
  const Json patch{{"status", JsonObject{{"conditions", JsonArray{ready}}}}};
  const Result<Json> answer =
      look.client.Patch(PoolResource(), "", pool, kube::PatchType::kMerge, patch, "status");
  return answer.ok() || answer.status().code() == Code::kNotFound;
}

// Sets the condition of a pod. The first NodesComing is also published as an Event.
void Autoscaler::Impl::Judge(const cluster::Pod& pod, reconcile::WantedCondition condition,
                             Time now) {
  condition.message = Shortened(scheduling::NamesOnlyFor(pod.meta.ns, condition.message), kMaxText);
  const std::string key = pod.Key();
  const cluster::Condition* told = pod.FindCondition(kScalingCondition);
  const auto known = verdicts_.find(key);
  const std::string before = known != verdicts_.end() ? known->second.condition.reason
                             : told != nullptr        ? told->reason
                                                      : "";
  if (condition.reason == "NodesComing" && before != condition.reason) {
    telling_.Say({ReferenceTo(pod), kube::EventType::kNormal, "NodesComing", condition.message});
  }
  Verdict& verdict = verdicts_[key];
  const bool fresh = before != condition.reason;
  const bool differs = fresh || verdict.condition.message != condition.message;
  verdict.condition = std::move(condition);
  if (!differs && reconcile::HasCondition(pod, verdict.condition)) return;
  // A failed write keeps its back-off.
  if (fresh || !untold_.Failing(key)) {
    untold_.Add(key, fresh ? now : std::max(now, verdict.written + kRefresh));
  }
}

void Autoscaler::Impl::ForgetVerdicts(const reconcile::Listers& view) {
  std::erase_if(verdicts_, [&](const auto& item) {
    const Pod pod = view.pods.Get(item.first);
    return pod == nullptr || !pod->node_name.empty();
  });
}

// Writes a limited number of conditions per call, so that many pods do not delay the next decision.
void Autoscaler::Impl::TellPods(Look& look) {
  const Time begin = look.clock.Now();
  if (begin < pods_pace_.next()) return;
  std::vector<std::string> keys;
  std::vector<kube::NamedPatch> patches;
  while (patches.size() < kWritesPerCall) {
    const std::optional<std::string> key = untold_.Take(begin);
    if (!key) break;
    untold_.Done(*key);
    const auto verdict = verdicts_.find(*key);
    const Pod pod = look.view.pods.Get(*key);
    const bool open = verdict != verdicts_.end() && pod != nullptr && pod->node_name.empty();
    if (!open || reconcile::HasCondition(*pod, verdict->second.condition)) {
      untold_.Forget(*key);
      continue;
    }
    keys.push_back(*key);
    patches.push_back(reconcile::ConditionPatch(*pod, verdict->second.condition, begin));
  }
  if (patches.empty()) return;
  const auto answers = look.client.Within(pods_pace_.patience())
                           .PatchAll(kube::kPods, kube::PatchType::kStrategic, patches, "status");
  const Time end = look.clock.Now();
  pods_pace_.Took(end - begin, end);
  Status error;
  for (size_t i = 0; i < keys.size(); ++i) {
    const Status written = answers[i].status();
    const bool gone = written.code() == Code::kNotFound || written.code() == Code::kConflict;
    if (written.ok()) verdicts_[keys[i]].written = begin;
    if (!written.ok() && !gone) error = written;
    written.ok() || gone ? untold_.Forget(keys[i]) : untold_.Retry(keys[i], end);
  }
  if (error.ok()) return;
  Log(LogLevel::kWarn, "failed to update Pod conditions, retrying", {{"error", error.ToString()}});
}

void Autoscaler::Impl::ShowPools(const Look& look) const {
  if (metrics_ == nullptr) return;
  std::vector<std::pair<MetricLabels, double>> nodes, prices;
  for (const Pool& pool : look.pools) {
    const std::string& name = pool.pool->meta.name;
    const auto put = [&](const char* state, int count) {
      nodes.push_back({{{"pool", name}, {"state", state}}, static_cast<double>(count)});
    };
    put("there", pool.nodes.there);
    put("coming", pool.state.now.coming);
    put("going", pool.nodes.going);
    const double price = static_cast<double>(cluster::MilliPriceOf(*pool.pool)) / 1000;
    prices.push_back({{{"pool", name}}, price * (pool.nodes.Present() + pool.nodes.going)});
  }
  metrics_->SetAll(kPoolNodeCounts, nodes);
  metrics_->SetAll(kPoolPrice, prices);
}

}  // namespace nos::controllers
