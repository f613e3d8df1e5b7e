#include "kube/leader_election.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace nos::kube {
namespace {

// metav1.MicroTime.
std::string MicroTime(Time time) {
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(
      time - std::chrono::floor<std::chrono::seconds>(time));
  std::string text = FormatTime(time);
  text.pop_back();  // the Z
  return fmt::format("{}.{:06}Z", text, micros.count());
}

// The value of an int32 field; 0 if it is not an integer.
int64_t Whole(const Json& lease, std::string_view field) {
  const Json* value = Find(lease, "spec", field);
  if (value == nullptr || !value->is_int64()) return 0;
  return std::clamp<int64_t>(value->get_int64(), 0, INT32_MAX);
}

}  // namespace

void LeaderElector::Step(Client& client, Time now) {
  if (now < due_) return;
  due_ = now + options_.retry;
  error_ = Try(client, now);
}

Status LeaderElector::Try(Client& client, Time now) {
  auto lease = client.Get(kLeases, options_.ns, options_.name);
  if (lease.status().code() == Code::kNotFound) {
    JsonObject spec = Spec(now);
    spec["acquireTime"] = MicroTime(now);
    spec["leaseTransitions"] = 0;
    JsonObject metadata = Metadata();
    metadata["namespace"] = options_.ns;
    metadata["name"] = options_.name;
    const Json fresh = {{"apiVersion", "coordination.k8s.io/v1"},
                        {"kind", "Lease"},
                        {"metadata", std::move(metadata)},
                        {"spec", std::move(spec)}};
    lease = client.Create(kLeases, options_.ns, fresh);
    NOS_RETURN_IF_ERROR(lease.status());
    renewed_ = now;
    Observe(*lease, now);
    return Status::Ok();
  }
  NOS_RETURN_IF_ERROR(lease.status());
  Observe(*lease, now);
  if (holder_ != options_.identity) renewed_.reset();
  const Duration lasts = std::chrono::seconds(Whole(*lease, "leaseDurationSeconds"));
  const bool others = !holder_.empty() && holder_ != options_.identity;
  if (others && now < changed_ + lasts) return Status::Ok();
  return Take(client, *lease, now);
}

Status LeaderElector::Take(Client& client, const Json& lease, Time now) {
  JsonObject spec = Spec(now);
  if (holder_ != options_.identity) {
    spec["acquireTime"] = MicroTime(now);
    spec["leaseTransitions"] = std::min<int64_t>(Whole(lease, "leaseTransitions") + 1, INT32_MAX);
  }
  JsonObject metadata = Metadata();
  metadata["resourceVersion"] = version_;
  const Json patch = {{"metadata", std::move(metadata)}, {"spec", std::move(spec)}};
  const auto taken = client.Patch(kLeases, options_.ns, options_.name, PatchType::kMerge, patch);
  NOS_RETURN_IF_ERROR(taken.status());  // a conflict: another replica was faster
  renewed_ = now;
  Observe(*taken, now);
  return Status::Ok();
}

void LeaderElector::Observe(const Json& lease, Time now) {
  holder_ = FindString(lease, "spec", "holderIdentity");
  const std::string_view version = FindString(lease, "metadata", "resourceVersion");
  if (version == version_) return;
  version_ = version;
  changed_ = now;
}

JsonObject LeaderElector::Spec(Time now) const {
  return {{"holderIdentity", options_.identity},
          {"leaseDurationSeconds",
           std::chrono::duration_cast<std::chrono::seconds>(options_.lease).count()},
          {"renewTime", MicroTime(now)}};
}

JsonObject LeaderElector::Metadata() const {
  JsonObject metadata;
  if (!options_.annotations) return metadata;
  JsonObject annotations;
  for (const auto& [key, value] : options_.annotations()) annotations[key] = value;
  metadata["annotations"] = std::move(annotations);
  return metadata;
}

void LeaderElector::Release(Client& client) {
  const bool held = std::exchange(renewed_, std::nullopt).has_value();
  if (!held || holder_ != options_.identity) return;
  const Json patch = {{"metadata", {{"resourceVersion", version_}}},
                      {"spec", {{"holderIdentity", ""}, {"leaseDurationSeconds", 1}}}};
  error_ = client.Patch(kLeases, options_.ns, options_.name, PatchType::kMerge, patch).status();
  holder_.clear();
}

}  // namespace nos::kube
