#include "controllers/autoscaler/scaling_events.h"

#include <fmt/format.h>

#include <string>
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
  for (const RelocationNote& note : notes) {
    switch (note.kind) {
      case RelocationNote::Kind::kStarted:
        if (!note.node.empty()) Add(events::NodeEmptying(note.node, note.moves));
        break;
      case RelocationNote::Kind::kHeld:
        break;
      case RelocationNote::Kind::kEvicted:
        if (const auto pod = view.pods.Get(note.pod)) {
          Add(events::MovedAway(*pod, note.from, note.to));
        }
        break;
      case RelocationNote::Kind::kMoved:
        if (note.for_pod.empty()) break;  // a node is drained
        if (const auto pod = view.pods.Get(note.for_pod)) Add(events::MadeRoom(*pod));
        break;
      case RelocationNote::Kind::kBadMark:
        Add(events::BadRemovalMark(note.node, kRemoval, note.why, note.cordoned));
        break;
      case RelocationNote::Kind::kCalledOff:
        OfCalledOff(note, now);
        break;
    }
  }
}

void ScalingEvents::OfCalledOff(const RelocationNote& note, Time now) {
  std::string message;
  if (!note.node.empty()) {
    kube::EventNote kept = events::NodeKept(note.node, note.why, note.any_evicted);
    message = kept.message;
    Add(std::move(kept));
  } else if (!note.for_pod.empty()) {
    message = fmt::format("{} moves that make room for {}: {}",
                          note.any_evicted ? "Stopping" : "Cancelling",
                          scheduling::PodText(note.for_pod), note.why);
  } else {
    message = fmt::format("Deleting placeholder Pod {}: {}", note.placeholder, note.why);
  }
  Record(
      {.action = "call-off", .pool = note.pool, .node = note.node, .message = std::move(message)},
      now);
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
