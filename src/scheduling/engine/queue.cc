#include "scheduling/queue.h"

#include <algorithm>

#include "scheduling/pod_kind.h"

namespace nos::scheduling {
namespace {

// Kind of a pending pod with respect to events. Gang membership does not affect nodes and so is
// missing in KindOf, but it affects when a pod can be scheduled. Gangs defined by a label are
// covered by KindOf's labels.
std::string WaitingKindOf(const cluster::Pod& pod) {
  std::string kind = KindOf(pod);
  if (!pod.scheduling_group.empty()) return kind + pod.scheduling_group + '\n';
  if (!pod.workload) return kind;
  for (const std::string& part :
       {pod.workload->name, pod.workload->pod_group, pod.workload->replica_key}) {
    kind += part + '\n';
  }
  return kind;
}

}  // namespace

SchedulingQueue::Rank SchedulingQueue::RankOf(const cluster::Pod& pod) {
  return {-int64_t{pod.priority}, pod.meta.created, pod.Key()};
}

// Removes the pod from its current place.
void SchedulingQueue::Leave(const std::string& key, Entry& entry) {
  switch (entry.place) {
    case Place::kReady:
      ready_.erase(RankOf(*entry.pod));
      break;
    case Place::kPaused:
      paused_.erase({entry.until, key});
      break;
    case Place::kAsleep: {
      by_time_asleep_.erase({entry.asleep_since, key});
      const auto room = sleeps_in_.extract(key);
      Dormitory& dormitory = dormitories_.at(room.mapped());
      dormitory.keys.erase(key);
      if (dormitory.keys.empty()) dormitories_.erase(room.mapped());
      break;
    }
    case Place::kGated:
      --gated_;
      break;
    case Place::kTaken:
      break;
  }
  entry.place = Place::kTaken;
}

void SchedulingQueue::MakeReady(const std::string& key, Entry& entry) {
  Leave(key, entry);
  ready_.emplace(RankOf(*entry.pod), key);
  entry.place = Place::kReady;
}

void SchedulingQueue::Pause(const std::string& key, Entry& entry, Time until) {
  Leave(key, entry);
  entry.until = until;
  paused_.emplace(until, key);
  entry.place = Place::kPaused;
}

// A pod in back-off stays there until the back-off ends.
void SchedulingQueue::Wake(const std::string& key, Entry& entry, Time now) {
  if (entry.until > now) return Pause(key, entry, entry.until);
  MakeReady(key, entry);
}

void SchedulingQueue::Set(const Pod& pod, const Verdict& gate, Time now) {
  const std::string key = pod->Key();
  Entry& entry = entries_[key];
  const bool known = entry.pod != nullptr && entry.pod->meta.uid == pod->meta.uid;
  std::string kind = WaitingKindOf(*pod);
  const bool alike = known && entry.kind == kind && RankOf(*entry.pod) == RankOf(*pod) &&
                     (entry.place == Place::kGated) == !gate.fits();
  if (alike || (known && entry.place == Place::kTaken)) {
    entry.pod = pod;
    entry.kind = std::move(kind);
    return;
  }
  if (entry.pod != nullptr) Leave(key, entry);
  if (!known) entry = Entry();
  entry.pod = pod;
  entry.kind = std::move(kind);
  if (!gate.fits()) {
    entry.place = Place::kGated;
    ++gated_;
    return;
  }
  Wake(key, entry, now);
}

void SchedulingQueue::Remove(const std::string& key) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return;
  Leave(key, found->second);
  entries_.erase(found);
}

void SchedulingQueue::OnClusterEvent(const ClusterEvent& event, Time now) {
  std::vector<std::string> woken;
  for (const auto& [name, dormitory] : dormitories_) {
    const bool helps =
        dormitory.by.empty() || std::ranges::any_of(dormitory.by, [&](const Plugin* plugin) {
          return plugin->MayHelp(event, *dormitory.one);
        });
    if (helps) woken.insert(woken.end(), dormitory.keys.begin(), dormitory.keys.end());
  }
  for (const std::string& key : woken) Wake(key, entries_.at(key), now);
}

void SchedulingQueue::WakeAll(Time now) {
  while (!sleeps_in_.empty()) {
    const std::string key = sleeps_in_.begin()->first;
    Wake(key, entries_.at(key), now);
  }
}

void SchedulingQueue::WakeDue(Time now) {
  while (!paused_.empty() && paused_.begin()->first <= now) {
    const std::string key = paused_.begin()->second;
    MakeReady(key, entries_.at(key));
  }
  while (!by_time_asleep_.empty() && by_time_asleep_.begin()->first + options_.max_sleep <= now) {
    const std::string key = by_time_asleep_.begin()->second;
    MakeReady(key, entries_.at(key));
  }
}

bool SchedulingQueue::HasReady(Time now) {
  WakeDue(now);
  return !ready_.empty();
}

std::optional<SchedulingQueue::Pod> SchedulingQueue::Take(Time now) {
  if (!HasReady(now)) return std::nullopt;
  const std::string key = ready_.begin()->second;
  Entry& entry = entries_.at(key);
  Leave(key, entry);
  return entry.pod;
}

std::optional<SchedulingQueue::Pod> SchedulingQueue::TakeThis(const std::string& key) {
  const auto found = entries_.find(key);
  if (found == entries_.end() || found->second.place == Place::kGated) return std::nullopt;
  Leave(key, found->second);
  return found->second.pod;
}

// The address identifies a plugin: plugins are immutable and exist once.
std::string SchedulingQueue::DormitoryOf(const Entry& entry, const std::vector<const Plugin*>& by) {
  std::string name = entry.kind;
  for (const Plugin* plugin : by) {
    name.append(reinterpret_cast<const char*>(&plugin), sizeof(Plugin*));
  }
  return name;
}

void SchedulingQueue::Refused(const Pod& pod, std::vector<const Plugin*> by, Time now) {
  const std::string key = pod->Key();
  const auto found = entries_.find(key);
  if (found == entries_.end() || found->second.place != Place::kTaken) return;
  Entry& entry = found->second;
  ++entry.attempts;
  entry.until = now + PauseAfter(entry.attempts);
  std::ranges::sort(by);
  const std::string name = DormitoryOf(entry, by);
  Dormitory& dormitory = dormitories_[name];
  if (dormitory.one == nullptr) {
    dormitory.one = entry.pod;
    dormitory.by = std::move(by);
  }
  dormitory.keys.insert(key);
  sleeps_in_[key] = name;
  entry.asleep_since = now;
  by_time_asleep_.emplace(now, key);
  entry.place = Place::kAsleep;
}

void SchedulingQueue::Failed(const Pod& pod, Time now) {
  const auto found = entries_.find(pod->Key());
  if (found == entries_.end() || found->second.place != Place::kTaken) return;
  ++found->second.attempts;
  Pause(found->first, found->second, now + PauseAfter(found->second.attempts));
}

void SchedulingQueue::Return(const Pod& pod, Time now) {
  const auto found = entries_.find(pod->Key());
  if (found == entries_.end() || found->second.place != Place::kTaken) return;
  Wake(found->first, found->second, now);
}

void SchedulingQueue::Activate(const std::string& key) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return;
  const Place place = found->second.place;
  if (place == Place::kPaused || place == Place::kAsleep) MakeReady(key, found->second);
}

std::optional<Time> SchedulingQueue::NextDue() const {
  std::optional<Time> due;
  if (!paused_.empty()) due = paused_.begin()->first;
  if (!by_time_asleep_.empty()) {
    const Time wakes = by_time_asleep_.begin()->first + options_.max_sleep;
    due = due ? std::min(*due, wakes) : wakes;
  }
  return due;
}

std::vector<SchedulingQueue::Pod> SchedulingQueue::All() const {
  std::vector<Pod> pods;
  pods.reserve(entries_.size());
  for (const auto& [key, entry] : entries_) pods.push_back(entry.pod);
  return pods;
}

}  // namespace nos::scheduling
