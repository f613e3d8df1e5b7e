// Slice reservations: slices planned for a pod are reserved until the pod is bound or a deadline
// expires, which shows that something else keeps the pod pending. Such a pod is then left out of
// planning with growing back-off, so that it does not reserve slices for ever.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cluster/objects.h"
#include "reconcile/back_off_table.h"

namespace nos::controllers {

struct SliceReservation {
  std::shared_ptr<const cluster::Pod> pod;
  std::string node;
  Time until{};
};

class SliceReservations {
 public:
  using Pod = std::shared_ptr<const cluster::Pod>;

  // `pauses.base` is also the lifetime of a reservation.
  explicit SliceReservations(BackOff pauses) : paused_(pauses) {}

  void Add(Pod pod, std::string node, Time now);
  // Drops reservations of pods that are bound or deleted (`find` returns the current pod, or null).
  // Returns reservations that expired.
  std::vector<SliceReservation> Update(const std::function<Pod(const std::string& key)>& find,
                                       Time now);
  // Restarts the deadlines of the node's reservations, because its instances exist now.
  void Renew(const std::string& node, Time now);
  // Drops the node's reservations, because its plan failed.
  void DropNode(const std::string& node);
  void Drop(const std::string& pod) { reservations_.erase(pod); }

  bool Holds(const std::string& pod) const { return reservations_.contains(pod); }
  // The pod is left out of planning for now.
  bool Pausing(const std::string& pod, Time now) const { return paused_.Resting(pod, now); }
  const std::map<std::string, SliceReservation>& all() const { return reservations_; }
  std::optional<Time> NextChange(Time now) const;

 private:
  Time Deadline(Time now) const { return now + paused_.pauses().base; }

  std::map<std::string, SliceReservation> reservations_;  // by pod key
  // By pod key, with the pod's UID: another pod of the same name starts with the first back-off.
  reconcile::BackOffTable<std::string, std::string> paused_;
};

}  // namespace nos::controllers
