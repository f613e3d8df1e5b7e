#include "controllers/autoscaler/scaling_events.h"

#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "controllers/events.h"
#include "controllers/metrics.h"
#include "scheduling/pod_names.h"

namespace nos::controllers {
namespace {

constexpr size_t kMaxText = 1000;  // bytes, of the message of a decision

}  // namespace

ScalingEvents::ScalingEvents(size_t remembered, Metrics* metrics)
    : remembered_(remembered), metrics_(metrics) {
  if (metrics_ == nullptr) return;
  // Initialise the counters: Prometheus increase() misses the first event of a series that starts
  // at 1.
  for (const char* action : {"grow", "shrink", "move", "call-off", "close", "keep"}) {
    metrics_->Count(kScalingDecisions, {{"action", action}}, 0);
  }
}

void ScalingEvents::OfRelocations(const std::vector<RelocationNote>& notes,
                                  const reconcile::Listers& view, Time now) {
  const auto of_pod = [&](const std::string& key, auto event, const std::string& text) {
    const auto pod = view.pods.Get(key);
    if (pod != nullptr) Add(event(*pod, scheduling::NamesOnlyFor(pod->meta.ns, text)));
  };
  for (const RelocationNote& note : notes) {
    switch (note.kind) {
      case RelocationNote::Kind::kStarted:
        if (!note.node.empty()) Add(events::NodeEmptying(note.node, note.message));
        break;
      case RelocationNote::Kind::kHeld:
        break;
      case RelocationNote::Kind::kEvicted:
        of_pod(note.pod, events::MovedAway, note.message);
        break;
      case RelocationNote::Kind::kMoved:
        if (!note.for_pod.empty()) of_pod(note.for_pod, events::MadeRoom, note.message);
        break;
      case RelocationNote::Kind::kBadMark:
        Add(events::BadRemovalMark(note.node, note.message));
        break;
      case RelocationNote::Kind::kCalledOff:
        if (!note.node.empty()) Add(events::NodeKept(note.node, note.message));
        Record(
            {.action = "call-off", .pool = note.pool, .node = note.node, .message = note.message},
            now);
        break;
    }
  }
}

void ScalingEvents::Record(ScalingDecision decision, Time now) {
  if (metrics_ != nullptr) metrics_->Count(kScalingDecisions, {{"action", decision.action}});
  decision.message = Shortened(decision.message, kMaxText);
  decision.time = now;
  decision.sequence = ++last_sequence_;
  Log(LogLevel::kInfo, "made scaling decision",
      {{"action", decision.action}, {"message", decision.message}});
  decisions_.push_back(std::move(decision));
  if (decisions_.size() > remembered_) decisions_.pop_front();
}

void ScalingEvents::Publish(const reconcile::Listers& view, kube::Client& client,
                            const Clock& clock) {
  queue_.Publish(view, client, clock);
}

}  // namespace nos::controllers
