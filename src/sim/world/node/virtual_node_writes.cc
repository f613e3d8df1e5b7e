// Writes of a virtual node to the API server. Each call of Write makes at most one request.
#include <fmt/format.h>

#include "sim/world/node/status.h"
#include "sim/world/node/virtual_node.h"

namespace nos::sim {

bool VirtualNode::Write() {
  if (clock_.Now() < retry_at_) return false;
  if (clock_.Now() >= status_at_) return Answered(WriteNode(), "node status");
  for (auto& [uid, pod] : pods_) {
    if (pod.pod == nullptr || !(pod.write_status || pod.remove_object)) continue;
    return Answered(WritePod(pod), "pod status");
  }
  if (clock_.Now() >= lease_at_) return Answered(WriteLease(), "lease");
  return false;
}

// Returns true: even a failure changes the world, and the write is repeated later.
bool VirtualNode::Answered(const Status& status, std::string_view what) {
  if (!status.ok()) {
    retry_at_ = clock_.Now() + times_.retry;
    log_.Note(name(), fmt::format("cannot write {}: {}", what, status.ToString()));
  }
  return true;
}

Status VirtualNode::WriteNode() {
  if (!registered_) {
    const Status created = client_.Create(kube::kNodes, "", NodeObject(spec_)).status();
    if (!created.ok() && created.code() != Code::kAlreadyExists) return created;
    registered_ = true;
  }
  const auto written =
      client_.Patch(kube::kNodes, "", spec_.name, kube::PatchType::kMerge,
                    NodeStatusPatch(spec_, devices_.Count(), clock_.Now(), ready_since_), "status");
  if (written.status().code() == Code::kNotFound) {
    Remove();  // the node object was deleted
    return Status::Ok();
  }
  NOS_RETURN_IF_ERROR(written.status());
  uid_ = FindString(*written, "metadata", "uid");
  status_at_ = clock_.Now() + times_.heartbeat;
  return Status::Ok();
}

// Aligned to a common schedule: nodes that started together renew together, so the world wakes once
// for all of them.
Status VirtualNode::WriteLease() {
  constexpr char kNamespace[] = "kube-node-lease";
  const Time now = clock_.Now();
  Status written =
      client_
          .Patch(kube::kLeases, kNamespace, spec_.name, kube::PatchType::kMerge, LeaseRenewal(now))
          .status();
  if (written.code() == Code::kNotFound) {
    written = client_.Create(kube::kLeases, kNamespace, NodeLease(spec_.name, uid_, now)).status();
  }
  NOS_RETURN_IF_ERROR(written);
  lease_at_ = ready_since_ + ((now - ready_since_) / kLeaseRenewal + 1) * kLeaseRenewal;
  return Status::Ok();
}

Status VirtualNode::WritePod(RunningPod& pod) {
  const cluster::ObjectMeta& meta = pod.pod->meta;
  Status written;
  const bool remove = !pod.write_status;
  if (remove) {
    const Json options =
        JsonObject{{"gracePeriodSeconds", 0}, {"preconditions", JsonObject{{"uid", meta.uid}}}};
    written = client_.Delete(kube::kPods, meta.ns, meta.name, options);
  } else {
    pod.status.now = clock_.Now();
    written = client_
                  .Patch(kube::kPods, meta.ns, meta.name, kube::PatchType::kStrategic,
                         PodStatusPatch(*pod.pod, pod.status), "status")
                  .status();
  }
  const bool gone = written.code() == Code::kNotFound;
  const bool refused = written.code() == Code::kInvalid || written.code() == Code::kPermission;
  if (!written.ok() && !gone && !refused) return written;
  if (refused) log_.Note(name(), fmt::format("gives up on {}: {}", meta.name, written.message()));
  (remove ? pod.remove_object : pod.write_status) = false;
  return Status::Ok();
}

}  // namespace nos::sim
