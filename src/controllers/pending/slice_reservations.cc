#include "controllers/pending/slice_reservations.h"

#include <algorithm>
#include <utility>

namespace nos::controllers {

void SliceReservations::Add(Pod pod, std::string node, Time now) {
  std::string key = pod->Key();
  claims_[std::move(key)] = {std::move(pod), std::move(node), Deadline(now)};
}

std::vector<Claim> SliceReservations::Update(const std::function<Pod(const std::string& key)>& find,
                                             Time now) {
  const auto settled = [&](const std::string& key, const std::string& uid) {
    const Pod pod = find(key);
    return pod == nullptr || pod->meta.uid != uid || !pod->node_name.empty() ||
           pod->meta.deleted.has_value();
  };
  paused_.ForgetIf(
      [&](const std::string& key, const auto& pause) { return settled(key, pause.note); });
  std::erase_if(claims_,
                [&](const auto& item) { return settled(item.first, item.second.pod->meta.uid); });
  std::vector<Claim> missed;
  for (const auto& [key, claim] : claims_) {
    if (claim.until > now) continue;
    paused_.Failed(key, now).note = claim.pod->meta.uid;
    missed.push_back(claim);
  }
  for (const Claim& claim : missed) claims_.erase(claim.pod->Key());
  return missed;
}

void SliceReservations::Renew(const std::string& node, Time now) {
  for (auto& [key, claim] : claims_) {
    if (claim.node == node) claim.until = Deadline(now);
  }
}

void SliceReservations::DropNode(const std::string& node) {
  std::erase_if(claims_, [&](const auto& item) { return item.second.node == node; });
}

std::optional<Time> SliceReservations::NextChange(Time now) const {
  std::optional<Time> next = paused_.NextEnd(now);
  for (const auto& [key, claim] : claims_) {
    if (claim.until > now) next = std::min(next.value_or(claim.until), claim.until);
  }
  return next;
}

}  // namespace nos::controllers
