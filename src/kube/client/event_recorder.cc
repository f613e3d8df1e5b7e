#include "kube/event_recorder.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/log.h"

namespace nos::kube {
namespace {

// FNV-1a, 64 bit: Event names must be the same on every platform and in every run.
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

std::vector<Status> EventRecorder::RecordAll(Client& client, const std::vector<EventNote>& notes,
                                             Time now) {
  std::vector<Saying> sayings;
  std::map<std::string, size_t> places;
  std::vector<size_t> place_of;  // note -> index in `sayings`
  place_of.reserve(notes.size());
  for (const EventNote& note : notes) {
    const auto [place, first] = places.try_emplace(IdentityOf(note), sayings.size());
    if (first) sayings.push_back({&note, place->first});
    ++sayings[place->second].times;
    place_of.push_back(place->second);
  }
  std::vector<Saying*> fresh, repeated;
  for (Saying& saying : sayings) {
    (known_.contains(saying.identity) ? repeated : fresh).push_back(&saying);
  }
  Repeat(client, repeated, now);
  // Events expire on the server: a repetition after that creates a new Event.
  for (Saying* saying : repeated) {
    if (saying->written.code() == Code::kNotFound) fresh.push_back(saying);
  }
  Create(client, fresh, now);
  for (const Saying& saying : sayings) Settle(saying);
  if (known_.size() > capacity_) ForgetOldest();
  std::vector<Status> written;
  written.reserve(notes.size());
  for (const size_t place : place_of) written.push_back(sayings[place].written);
  return written;
}

void EventRecorder::Repeat(Client& client, const std::vector<Saying*>& sayings, Time now) {
  std::vector<NamedPatch> patches;
  patches.reserve(sayings.size());
  for (const Saying* saying : sayings) {
    Known& event = known_[saying->identity];
    event.count += saying->times;
    patches.push_back(
        {event.ns, event.name, {{"count", event.count}, {"lastTimestamp", FormatTime(now)}}});
  }
  const std::vector<Result<Json>> answers = client.PatchAll(kEvents, PatchType::kMerge, patches);
  for (size_t i = 0; i < sayings.size(); ++i) sayings[i]->written = answers[i].status();
}

void EventRecorder::Create(Client& client, const std::vector<Saying*>& sayings, Time now) {
  std::vector<Json> objects;
  objects.reserve(sayings.size());
  for (const Saying* saying : sayings) {
    const ObjectReference& object = saying->note->object;
    Known& event = known_[saying->identity];
    event.count = saying->times;
    event.ns = object.ns.empty() ? "default" : object.ns;
    event.name =
        fmt::format("{}.{:x}", object.name,
                    Hash(fmt::format("{}|{}", saying->identity, now.time_since_epoch().count())));
    objects.push_back(ObjectOf(*saying->note, event, now));
  }
  const std::vector<Result<Json>> answers = client.CreateAll(kEvents, objects);
  for (size_t i = 0; i < sayings.size(); ++i) sayings[i]->written = answers[i].status();
}

void EventRecorder::Settle(const Saying& saying) {
  known_[saying.identity].used = ++uses_;
  if (saying.written.ok()) return;
  known_.erase(saying.identity);  // the next repetition creates a new Event
  Log(LogLevel::kDebug, "failed to write Event", {{"error", saying.written.ToString()}});
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
          {"count", event.count},
          {"firstTimestamp", time},
          {"lastTimestamp", time},
          {"source", {{"component", component_}}},
          {"reportingComponent", component_},
          {"reportingInstance", component_}};
}

// Drops a good part at once, because finding the oldest costs time proportional to all entries.
void EventRecorder::ForgetOldest() {
  std::vector<uint64_t> uses;
  uses.reserve(known_.size());
  for (const auto& [identity, event] : known_) uses.push_back(event.used);
  const auto middle = uses.begin() + static_cast<std::ptrdiff_t>(uses.size() / 4);
  std::nth_element(uses.begin(), middle, uses.end());
  std::erase_if(known_, [&](const auto& item) { return item.second.used <= *middle; });
}

}  // namespace nos::kube
