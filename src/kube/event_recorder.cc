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

std::string IdentityOf(const EventNote& note) {
  return fmt::format("{}|{}|{}|{}|{}|{}", note.object.kind, note.object.ns, note.object.name,
                     note.object.uid, note.reason,
                     std::string_view(note.message).substr(0, kMaxMessage));
}

}  // namespace

void EventRecorder::Record(Client& client, const ObjectReference& object, EventType type,
                           std::string_view reason, std::string_view message, Time now) {
  RecordAll(client, {{object, type, std::string(reason), std::string(message)}}, now);
}

void EventRecorder::RecordAll(Client& client, const std::vector<EventNote>& notes, Time now) {
  std::vector<const EventNote*> fresh, repeated;
  for (const EventNote& note : notes) {
    Known& event = known_[IdentityOf(note)];
    event.used = ++uses_;
    (event.count == 0 ? fresh : repeated).push_back(&note);
    event.count = std::max(event.count, 1);
  }
  Create(client, fresh, now);
  for (const EventNote* note : repeated) {
    const std::string identity = IdentityOf(*note);
    Known& event = known_[identity];
    ++event.count;
    const Json patch = {{"count", event.count}, {"lastTimestamp", FormatTime(now)}};
    const Status written =
        client.Patch(kEvents, event.ns, event.name, PatchType::kMerge, patch).status();
    // Events expire: one that is said again after that begins anew.
    if (written.code() == Code::kNotFound) {
      Create(client, {note}, now);
    } else {
      Settle(identity, written);
    }
  }
  if (known_.size() > capacity_) ForgetOldest();
}

void EventRecorder::Create(Client& client, const std::vector<const EventNote*>& notes, Time now) {
  std::vector<Json> objects;
  objects.reserve(notes.size());
  for (const EventNote* note : notes) {
    const std::string identity = IdentityOf(*note);
    Known& event = known_[identity];
    event.count = 1;
    event.ns = note->object.ns.empty() ? "default" : note->object.ns;
    event.name = fmt::format("{}.{:x}", note->object.name,
                             Hash(fmt::format("{}|{}", identity, now.time_since_epoch().count())));
    objects.push_back(ObjectOf(*note, event, now));
  }
  const std::vector<Result<Json>> answers = client.CreateAll(kEvents, objects);
  for (size_t i = 0; i < notes.size(); ++i) Settle(IdentityOf(*notes[i]), answers[i].status());
}

void EventRecorder::Settle(const std::string& identity, const Status& written) {
  if (written.ok()) return;
  known_.erase(identity);  // the next one starts afresh
  Log(LogLevel::kDebug, "event not written", {{"error", written.ToString()}});
}

Json EventRecorder::ObjectOf(const EventNote& note, const Known& event, Time now) const {
  const std::string time = FormatTime(now);
  const ObjectReference& object = note.object;
  return {{"apiVersion", "v1"},
          {"kind", "Event"},
          {"metadata", {{"name", event.name}, {"namespace", event.ns}}},
          {"involvedObject",
           {{"apiVersion", object.api_version},
            {"kind", object.kind},
            {"namespace", object.ns},
            {"name", object.name},
            {"uid", object.uid}}},
          {"type", note.type == EventType::kNormal ? "Normal" : "Warning"},
          {"reason", note.reason},
          {"message", note.message.substr(0, kMaxMessage)},
          {"count", 1},
          {"firstTimestamp", time},
          {"lastTimestamp", time},
          {"source", {{"component", component_}}},
          {"reportingComponent", component_},
          {"reportingInstance", component_}};
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
