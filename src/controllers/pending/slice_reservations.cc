#include "controllers/pending/slice_reservations.h"

#include <algorithm>
#include <utility>

namespace nos::controllers {

void SliceReservations::Add(Pod pod, std::string node, Time now) {
  std::string key = pod->Key();
  reservations_[std::move(key)] = {std::move(pod), std::move(node), Deadline(now)};
}

std::vector<SliceReservation> SliceReservations::Update(
    const std::function<Pod(const std::string& key)>& find, Time now) {
  const auto settled = [&](const std::string& key, const std::string& uid) {
    const Pod pod = find(key);
    return pod == nullptr || pod->meta.uid != uid || !pod->node_name.empty() ||
           pod->meta.deleted.has_value();
  };
  paused_.ForgetIf(
      [&](const std::string& key, const auto& pause) { return settled(key, pause.note); });
  std::erase_if(reservations_,
                [&](const auto& item) { return settled(item.first, item.second.pod->meta.uid); });
  std::vector<SliceReservation> missed;
  for (const auto& [key, reservation] : reservations_) {
    if (reservation.until > now) continue;
    paused_.Failed(key, now).note = reservation.pod->meta.uid;
    missed.push_back(reservation);
  }
  for (const SliceReservation& reservation : missed) reservations_.erase(reservation.pod->Key());
  return missed;
}

void SliceReservations::Renew(const std::string& node, Time now) {
  for (auto& [key, reservation] : reservations_) {
    if (reservation.node == node) reservation.until = Deadline(now);
  }
}

void SliceReservations::DropNode(const std::string& node) {
  std::erase_if(reservations_, [&](const auto& item) { return item.second.node == node; });
}

std::optional<Time> SliceReservations::NextChange(Time now) const {
  std::optional<Time> next = paused_.NextEnd(now);
  for (const auto& [key, reservation] : reservations_) {
    if (reservation.until > now)
      next = std::min(next.value_or(reservation.until), reservation.until);
  }
  return next;
}

}  // namespace nos::controllers
