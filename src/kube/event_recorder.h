// Publishes Events (core/v1) on objects, as `kubectl describe` shows them. Repetitions increase the
// count of an Event. Best effort: a failed write is logged and dropped unless the caller records it
// again.
//
//   EventRecorder events("nos-partitioner");
//   events.Record(client, {"Pod", pod.meta.ns, pod.meta.name, pod.meta.uid},
//                 EventType::kNormal, "SlicePlanned", "Planned slices on Node gpu-7: 3g.20gb@4 on
//                 GPU 0", now);
//
// Not thread-safe: one owner.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "kube/client.h"

namespace nos::kube {

struct ObjectReference {
  std::string kind, ns, name, uid;
  std::string api_version = "v1";
};

enum class EventType { kNormal, kWarning };

struct EventNote {
  ObjectReference object;
  EventType type = EventType::kNormal;
  std::string reason, message;
};

class EventRecorder {
 public:
  // Remembers the last `capacity` distinct Events to count their repetitions.
  explicit EventRecorder(std::string component, size_t capacity = 4096)
      : component_(std::move(component)), capacity_(capacity) {}

  void Record(Client& client, const ObjectReference& object, EventType type,
              std::string_view reason, std::string_view message, Time now);
  // Writes the notes concurrently. Returns a status for each note.
  std::vector<Status> RecordAll(Client& client, const std::vector<EventNote>& notes, Time now);

 private:
  struct Known {
    std::string ns, name;
    int count = 0;
    uint64_t used = 0;  // sequence number of the last use, to drop the oldest
  };

  // Identical notes of one call.
  struct Saying {
    const EventNote* note;
    std::string identity;
    int times = 0;
    Status written{};
  };

  void Repeat(Client& client, const std::vector<Saying*>& sayings, Time now);
  void Create(Client& client, const std::vector<Saying*>& sayings, Time now);
  Json ObjectOf(const EventNote& note, const Known& event, Time now) const;
  void Settle(const Saying& saying);
  void ForgetOldest();

  std::string component_;
  size_t capacity_;
  uint64_t uses_ = 0;
  std::map<std::string, Known> known_;
};

}  // namespace nos::kube
