#include "kube/event_recorder.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/log.h"

namespace nos::kube {
namespace {

// FNV-1a, 64 bit: names must be the same on every platform and run.
uint64_t Hash(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash;
}

constexpr size_t kMaxMessage = 1024;  // the API server refuses longer ones

}  // namespace

void EventRecorder::Record(Client& client, const ObjectReference& object, EventType type,
                           std::string_view reason, std::string_view message, Time now) {
  message = message.substr(0, kMaxMessage);
  const std::string identity = fmt::format("{}|{}|{}|{}|{}|{}", object.kind, object.ns, object.name,
                                           object.uid, reason, message);
  Known& event = known_[identity];
  event.used = ++uses_;
  Status written;
  if (++event.count > 1) {
    const Json patch = {{"count", event.count}, {"lastTimestamp", FormatTime(now)}};
    written = client.Patch(kEvents, event.ns, event.name, PatchType::kMerge, patch).status();
  }
  // Events expire: one that is said again after that begins anew.
  if (event.count == 1 || written.code() == Code::kNotFound) {
    event.count = 1;
    event.ns = object.ns.empty() ? "default" : object.ns;
    event.name = fmt::format("{}.{:x}", object.name,
                             Hash(fmt::format("{}|{}", identity, now.time_since_epoch().count())));
    written = Create(client, object, type, reason, message, now, event);
  }
  if (!written.ok()) {
    known_.erase(identity);  // the next one starts afresh
    Log(LogLevel::kDebug, "event not written", {{"error", written.ToString()}});
  }
  if (known_.size() > capacity_) ForgetOldest();
}

Status EventRecorder::Create(Client& client, const ObjectReference& object, EventType type,
                             std::string_view reason, std::string_view message, Time now,
                             const Known& event) {
  const std::string time = FormatTime(now);
  const Json body = {{"apiVersion", "v1"},
                     {"kind", "Event"},
                     {"metadata", {{"name", event.name}, {"namespace", event.ns}}},
                     {"involvedObject",
                      {{"apiVersion", object.api_version},
                       {"kind", object.kind},
                       {"namespace", object.ns},
                       {"name", object.name},
                       {"uid", object.uid}}},
                     {"type", type == EventType::kNormal ? "Normal" : "Warning"},
                     {"reason", reason},
                     {"message", message},
                     {"count", 1},
                     {"firstTimestamp", time},
                     {"lastTimestamp", time},
                     {"source", {{"component", component_}}},
                     {"reportingComponent", component_},
                     {"reportingInstance", component_}};
  return client.Create(kEvents, event.ns, body).status();
}

// A good part at once: looking for them costs with all that is known.
void EventRecorder::ForgetOldest() {
  std::vector<uint64_t> uses;
  uses.reserve(known_.size());
  for (const auto& [identity, event] : known_) uses.push_back(event.used);
  const auto middle = uses.begin() + static_cast<std::ptrdiff_t>(uses.size() / 4);
  std::nth_element(uses.begin(), middle, uses.end());
  std::erase_if(known_, [&](const auto& item) { return item.second.used <= *middle; });
}

}  // namespace nos::kube
