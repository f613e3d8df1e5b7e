#include "controllers/collector_events.h"

#include <algorithm>
#include <utility>

#include "base/millis.h"
#include "base/text.h"

namespace nos::controllers {
namespace {

// Kubernetes takes no longer messages, and reasons of 128.
constexpr size_t kMostMessage = 1024, kMostName = 256;
constexpr Duration kAgain = std::chrono::hours(1);

JsonObject RecordOf(const cluster::KubernetesEvent& event) {
  return {{"kind", "event"},
          {"at", ToMillis(event.last)},
          {"id", Shortened(event.meta.uid, kMostName)},
          {"object",
           {{"kind", Shortened(event.kind, kMostName)},
            {"namespace", Shortened(event.ns, kMostName)},
            {"name", Shortened(event.name, kMostName)}}},
          {"type", event.type == "Warning" ? "Warning" : "Normal"},
          {"reason", Shortened(event.reason, kMostName)},
          {"message", Shortened(event.message, kMostMessage)},
          {"source", Shortened(event.source, kMostName)},
          {"count", event.count}};
}

}  // namespace

void EventTally::Put(const cluster::KubernetesEvent& event) {
  const auto [known, fresh] = told_.try_emplace(event.meta.uid);
  Told& told = known->second;
  const bool news = fresh || (event.count > told.count &&
                              (event.count >= 2 * told.count || event.last - told.last >= kAgain));
  if (!news) return;
  if (fresh) order_.push_back(event.meta.uid);
  told.count = event.count;
  told.last = event.last;
  if (told.waits) {  // the newer one takes its place
    const auto place = std::ranges::find(waiting_, event.meta.uid, [](auto& w) { return w.first; });
    place->second = RecordOf(event);
    return;
  }
  told.waits = true;
  waiting_.emplace_back(event.meta.uid, RecordOf(event));
  if (waiting_.size() > kMostWaiting) {
    told_.at(waiting_.front().first).waits = false;
    waiting_.pop_front();
    ++dropped_;
  }
}

std::vector<JsonObject> EventTally::Take(Time now) {
  const double seconds = std::chrono::duration<double>(now - filled_).count();
  tokens_ = std::min(kBurst, tokens_ + std::max(0.0, seconds) * kPerSecond);
  filled_ = now;
  std::vector<JsonObject> records;
  for (; !waiting_.empty() && tokens_ >= 1; tokens_ -= 1) {
    told_.at(waiting_.front().first).waits = false;
    records.push_back(std::move(waiting_.front().second));
    waiting_.pop_front();
  }
  while (order_.size() > kMostKnown) {
    if (!told_.at(order_.front()).waits) {
      told_.erase(order_.front());
    } else {
      order_.push_back(order_.front());
    }
    order_.pop_front();
  }
  return records;
}

}  // namespace nos::controllers
