#include "agent/claims/slice_publisher.h"

#include <utility>

#include "base/log.h"

namespace nos::agent {
namespace {

const kube::Resource kSlices{"resource.k8s.io", "v1", "resourceslices", "ResourceSlice", false};
constexpr int kMaxRounds = 5;  // each of the three rules changes at most once

Result<std::vector<Json>> ListOwn(kube::Client& client, const std::string& node) {
  kube::ListOptions options;
  options.field_selector = "spec.nodeName=" + node;
  NOS_ASSIGN(kube::ObjectList list, client.List(kSlices, "", options));
  std::erase_if(list.items, [](const Json& slice) {
    return FindString(slice, "spec", "driver") != dra::kNosDriver;
  });
  return std::move(list.items);
}

}  // namespace

Status SlicePublisher::Publish(kube::Client& client, const dra::NodeOfDriver& node,
                               const std::vector<dra::GpuOfDriver>& gpus) {
  for (int i = 0; i < kMaxRounds; ++i) {
    NOS_ASSIGN(const std::vector<Json> existing, ListOwn(client, node.name));
    const dra::SliceWrites writes =
        dra::PlanSlices(node, dra::SliceSpecs(node, gpus, rules_), existing);
    if (writes.empty()) return Status::Ok();
    bool again = false;
    Status written = Write(client, writes, again);
    if (written.code() == Code::kUnimplemented) (void)Withdraw(client, node.name);
    if (!again) return written;
  }
  return Internal("the API server does not store ResourceSlices as they are sent");
}

Status SlicePublisher::Write(kube::Client& client, const dra::SliceWrites& writes, bool& again) {
  for (const Json& slice : writes.create) {
    NOS_RETURN_IF_ERROR(CheckStored(slice, client.Create(kSlices, "", slice), again));
    if (again) return Status::Ok();
  }
  for (const Json& slice : writes.update) {
    NOS_RETURN_IF_ERROR(CheckStored(slice, client.Update(kSlices, "", slice), again));
    if (again) return Status::Ok();
  }
  for (const std::string& name : writes.remove) {
    const Status removed = client.Delete(kSlices, "", name);
    if (!removed.ok() && removed.code() != Code::kNotFound) return removed;
  }
  Log(LogLevel::kInfo, "published ResourceSlices",
      {{"created", std::to_string(writes.create.size())},
       {"updated", std::to_string(writes.update.size())},
       {"removed", std::to_string(writes.remove.size())}});
  form_known_ = true;
  return Status::Ok();
}

Status SlicePublisher::CheckStored(const Json& sent, const Result<Json>& stored, bool& again) {
  if (!stored.ok()) {
    // Kubernetes 1.34 refuses counters in a slice of their own, later versions refuse the reverse.
    if (stored.status().code() != Code::kInvalid || form_known_) return stored.status();
    form_known_ = true;
    rules_.combined = !rules_.combined;
    again = true;
    return Status::Ok();
  }
  const dra::DroppedFields dropped = dra::DroppedBetween(sent, *stored);
  if (dropped.counters) {
    return {Code::kUnimplemented,
            "the API server drops counters of ResourceSlices: switch on the feature gate "
            "DRAPartitionableDevices, which Kubernetes 1.36 has on by default"};
  }
  if (dropped.shares && rules_.shares) {
    rules_.shares = false;
    again = true;
  }
  if (dropped.binding_conditions && rules_.binding_conditions) {
    rules_.binding_conditions = false;
    again = true;
  }
  return Status::Ok();
}

Status SlicePublisher::Withdraw(kube::Client& client, const std::string& node) {
  const auto existing = ListOwn(client, node);
  // Without the API there are no slices.
  if (existing.status().code() == Code::kNotFound) return Status::Ok();
  NOS_RETURN_IF_ERROR(existing.status());
  for (const Json& slice : *existing) {
    const Status removed = client.Delete(kSlices, "", FindString(slice, "metadata", "name"));
    if (!removed.ok() && removed.code() != Code::kNotFound) return removed;
  }
  return Status::Ok();
}

}  // namespace nos::agent
