#include "controllers/pending/slice_reservations.h"

#include <algorithm>
#include <utility>

namespace nos::controllers {

void SliceReservations::Add(Pod pod, std::string node, Time now) {
  std::string key = pod->Key();
  claims_[std::move(key)] = {std::move(pod), std::move(node), now + pauses_.base};
}

std::vector<Claim> SliceReservations::Update(const std::function<Pod(const std::string& key)>& find,
                                             Time now) {
  const auto settled = [&](const std::string& key, const std::string& uid) {
    const Pod pod = find(key);
    return pod == nullptr || pod->meta.uid != uid || !pod->node_name.empty() ||
           pod->meta.deleted.has_value();
  };
  std::erase_if(paused_, [&](const auto& item) { return settled(item.first, item.second.uid); });
  std::erase_if(claims_,
                [&](const auto& item) { return settled(item.first, item.second.pod->meta.uid); });
  std::vector<Claim> missed;
  for (const auto& [key, claim] : claims_) {
    if (claim.until > now) continue;
    Pause& pause = paused_[key];
    pause.uid = claim.pod->meta.uid;
    pause.until = now + pauses_.After(++pause.times);
    missed.push_back(claim);
  }
  for (const Claim& claim : missed) claims_.erase(claim.pod->Key());
  return missed;
}

void SliceReservations::Renew(const std::string& node, Time now) {
  for (auto& [key, claim] : claims_) {
    if (claim.node == node) claim.until = now + pauses_.base;
  }
}

void SliceReservations::DropNode(const std::string& node) {
  std::erase_if(claims_, [&](const auto& item) { return item.second.node == node; });
}

bool SliceReservations::Pausing(const std::string& pod, Time now) const {
  const auto found = paused_.find(pod);
  return found != paused_.end() && found->second.until > now;
}

std::optional<Time> SliceReservations::NextChange(Time now) const {
  std::optional<Time> next;
  const auto consider = [&](Time time) {
    if (time > now) next = std::min(next.value_or(time), time);
  };
  for (const auto& [key, claim] : claims_) consider(claim.until);
  for (const auto& [key, pause] : paused_) consider(pause.until);
  return next;
}

}  // namespace nos::controllers
