#include "controllers/scheduler/gang_bindings.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

namespace nos::controllers {

using Stage = BindingCycle::Stage;

void GangBindings::OnPod(const Pod& before, const Pod& after, Time now) {
  if (before == nullptr) return;
  const std::string gang = GangOf(*before);
  if (gang.empty()) return;
  const std::string key = before->Key();
  const bool stays = after != nullptr && CountsInGang(*after) && GangOf(*after) == gang;
  const bool had_place = IsPlacedInGang(*before), has_place = stays && IsPlacedInGang(*after);
  const BindingCycle::Binding* binding = bindings_.Find(key);
  const bool was_placed =
      binding != nullptr && binding->gang == gang && binding->stage == Stage::kPreparing;
  if (!stays && was_placed) {
    bindings_.Release(key, fmt::format("it has left {}", gang), now);
  } else if (!stays || had_place != has_place) {
    MarkDirty(gang, has_place ? "" : fmt::format("{} has left it", key));
  }
}

void GangBindings::MarkDirty(const std::string& gang, const std::string& why) {
  std::string& reason = dirty_[gang];
  if (reason.empty()) reason = why;
}

void GangBindings::Step(kube::Client& client, Time now) {
  while (!dirty_.empty()) {
    const auto next = dirty_.extract(dirty_.begin());
    StepGang(next.key(), next.mapped(), client, now);
  }
}

void GangBindings::StepGang(const std::string& gang, const std::string& why, kube::Client& client,
                            Time now) {
  // 1. Count members: placed ones, and those in PreBind, with their instances, and ready to bind.
  size_t placed = 0, least = 0;
  std::vector<std::string> preparing, with_instances, ready;
  for (const Pod& member : gangs_.Of(gang)) {
    const std::string key = member->Key();
    const BindingCycle::Binding* binding = bindings_.Find(key);
    if (binding == nullptr) {
      placed += IsPlacedInGang(*member) ? 1 : 0;
      continue;
    }
    if (binding->stage != Stage::kPreparing || binding->gang != gang) {
      ++placed;
      continue;
    }
    least = std::max(least, binding->gang_minimum);
    preparing.push_back(key);
    if (!binding->awaits_instances) with_instances.push_back(key);
    if (binding->ready) ready.push_back(key);
  }

  // 2. Release all if too few members are left. This loop releases the other members, so a rollback
  //    must not mark the gang again.
  if (placed + preparing.size() < least) {
    for (const std::string& key : preparing) {
      bindings_.LeaveGang(key);
      bindings_.Release(key, fmt::format("{} is placed together or not at all: {}", gang, why),
                        now);
    }
    return;
  }

  // 3. Let members write volumes, then bind them, as soon as enough of them can.
  if (placed + with_instances.size() < least) return;
  for (const std::string& key : with_instances) bindings_.Resume(key, client, now);
  if (placed + ready.size() < least) return;
  for (const std::string& key : ready) bindings_.Bind(key, client);
}

}  // namespace nos::controllers
