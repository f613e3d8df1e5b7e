#include "sim/world/node/virtual_node.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/world/node/status.h"

namespace nos::sim {
namespace {

// "3x nvidia.com/mig-1g.5gb".
std::string Summary(const std::vector<kubelet::DeviceAssignment>& devices) {
  std::map<std::string, int> counts;
  for (const auto& device : devices) ++counts[device.resource];
  std::string out;
  for (const auto& [resource, n] : counts) out += fmt::format(" {}x {}", n, resource);
  return out;
}

bool IsOf(const std::vector<std::string>& containers, const kubelet::DeviceAssignment& device) {
  return std::ranges::find(containers, device.container) != containers.end();
}

}  // namespace

VirtualNode::VirtualNode(NodeSpec spec, kube::Transport& transport, const Clock& clock,
                         EventLog& log, Random random, KubeletTimes times)
    : spec_(std::move(spec)),
      client_(transport),
      clock_(clock),
      log_(log),
      devices_(spec_.dra, random),
      times_(times) {
  StartKubelet();
}

void VirtualNode::StartKubelet() {
  ready_since_ = clock_.Now();
  pods_.clear();
  changes_.clear();
  devices_.Forget();
  claims_.Forget();
  kube::ReflectorOptions options;
  options.field_selector = "spec.nodeName=" + spec_.name;
  cache_ = std::make_unique<kube::Cache<cluster::Pod>>(kube::kPods, cluster::ReadPod,
                                                       std::move(options));
  cache_->AddHandler([this](const std::string&, const PodPtr& before, const PodPtr& after) {
    changes_.emplace_back(before, after);
  });
  status_at_ = ready_since_;
}

bool VirtualNode::Step() {
  if (removed_) return false;
  if (down_until_) return BootIfDue();
  cache_->Pump(client_, clock_.Now());
  // One action per step. Changes come first, so that a stage does not end for a deleted pod; writes
  // come last, so that they report the latest state.
  return TakeChange() || Advance() || Write();
}

std::optional<Time> VirtualNode::NextWake() const {
  if (removed_) return std::nullopt;
  if (down_until_) return down_until_;
  Time wake = cache_->reflector().NextDue();
  Time write = std::min(status_at_, lease_at_);
  bool dirty = false;
  for (const auto& [uid, pod] : pods_) {
    if (pod.next) wake = std::min(wake, *pod.next);
    dirty |= pod.write_status || pod.remove_object;
  }
  if (dirty) write = clock_.Now();
  return std::min(wake, std::max(retry_at_, write));
}

bool VirtualNode::TakeChange() {
  if (changes_.empty()) return false;
  const auto [before, after] = std::move(changes_.front());
  changes_.pop_front();
  const bool same = before != nullptr && after != nullptr && before->meta.uid == after->meta.uid;
  if (before != nullptr && !same) OnGone(before->meta.uid);
  if (after != nullptr) OnPod(after);
  return true;
}

void VirtualNode::OnPod(const PodPtr& pod) {
  const auto known = pods_.find(pod->meta.uid);
  if (known == pods_.end()) {
    if (pod->Finished() && !pod->meta.deleted) return;
    return Admit(pod);
  }
  known->second.pod = pod;
  if (pod->meta.deleted) Stop(known->second);
}

// Deleted with force: the containers stop a moment later, and no status is written. A pod that was
// admitted in the same moment, as after a watch that was interrupted, has none: its worker starts
// containers only after cgroup, volumes and sandbox, and a deletion cancels that
// (kubernetes 1.34.2, pkg/kubelet/pod_workers.go, podWorkerLoop and cleanupUnstartedPod).
void VirtualNode::OnGone(const std::string& uid) {
  const auto found = pods_.find(uid);
  if (found == pods_.end()) return;
  const bool started =
      found->second.stage != Stage::kAdmitted || found->second.admitted < clock_.Now();
  if (found->second.stage == Stage::kFinished || !started) {
    pods_.erase(found);
  } else {
    found->second.pod = nullptr;
    Stop(found->second);
  }
}

void VirtualNode::Admit(const PodPtr& pod) {
  RunningPod& entry = pods_[pod->meta.uid];
  entry.pod = pod;
  entry.write_status = true;
  if (pod->meta.deleted) {
    // It reports the end first: a finalizer may keep the object.
    entry.stage = Stage::kFinished;
    entry.status.stage = PodStage::kFailed;
    entry.write_status = !pod->Finished();
    entry.remove_object = true;
    return;
  }
  std::optional<AdmissionRefusal> refusal = CheckResources(*pod);
  if (!refusal) {
    refusal = devices_.Allocate(*pod, pods_, entry.devices);
    // Binding sets this condition. A pod created with a node name was not sent by a scheduler.
    if (refusal && pod->FindCondition("PodScheduled") != nullptr) entry.refused = clock_.Now();
  }
  if (refusal) {
    entry.stage = Stage::kFinished;
    entry.status.stage = PodStage::kFailed;
    std::tie(entry.status.reason, entry.status.message) = std::move(*refusal);
    log_.Note(name(), fmt::format("refuses {}: {}", pod->Key(), entry.status.message));
    return;
  }
  entry.status.devices = entry.devices;
  entry.admitted = clock_.Now();
  entry.ending = EndingContainers(*pod);
  entry.status.initialized = entry.ending.empty();
  entry.next = clock_.Now();
  if (!pod->HasClaims()) *entry.next += times_.start + InitTime(*pod);
  log_.Note(name(), fmt::format("admits {}{}", pod->Key(), Summary(entry.devices)));
}

std::optional<AdmissionRefusal> VirtualNode::CheckResources(const cluster::Pod& pod) const {
  Quantity cpu = spec_.cpu, memory = spec_.memory;
  int slots = spec_.max_pods;
  const auto take = [&](const cluster::Pod& taker) {
    const cluster::ResourceList requests = cluster::PodRequests(taker);
    if (const auto found = requests.find("cpu"); found != requests.end()) cpu = cpu - found->second;
    if (const auto found = requests.find("memory"); found != requests.end()) {
      memory = memory - found->second;
    }
    --slots;
  };
  take(pod);
  for (const auto& [uid, other] : pods_) {
    const bool active = other.stage != Stage::kFinished && other.pod != nullptr;
    if (active && uid != pod.meta.uid) take(*other.pod);
  }
  const auto out_of = [](std::string_view what) {
    return AdmissionRefusal{fmt::format("OutOf{}", what),
                            fmt::format("Node didn't have enough resource: {}", what)};
  };
  if (cpu < Quantity()) return out_of("cpu");
  if (memory < Quantity()) return out_of("memory");
  if (slots < 0) return out_of("pods");
  return std::nullopt;
}

const RunningPod* VirtualNode::Holder(std::string_view device_id) const {
  for (const auto& [uid, pod] : pods_) {
    for (const auto& device : pod.devices) {
      if (device.device_id == device_id) return &pod;
    }
  }
  return nullptr;
}

const RunningPod* VirtualNode::ClaimHolder(std::string_view uuid) const {
  for (const auto& [uid, pod] : pods_) {
    if (claims_.HasDevice(uid, uuid)) return &pod;
  }
  return nullptr;
}

void VirtualNode::Stop(RunningPod& pod) {
  if (pod.stage == Stage::kFinished) {
    pod.remove_object = true;
    return;
  }
  const std::string ends = pod.pod == nullptr ? "" : EndsOf(*pod.pod);
  const bool late = ends == "late";
  if (pod.stage == Stage::kStopping && !late) return;
  pod.stage = Stage::kStopping;
  const Time stopped = clock_.Now() + times_.stop;
  pod.next = late ? std::max(stopped, pod.pod->meta.deleted.value_or(stopped)) : stopped;
  if (ends == "never") pod.next = std::nullopt;
}

bool VirtualNode::Advance() {
  for (auto entry = pods_.begin(); entry != pods_.end(); ++entry) {
    RunningPod& pod = entry->second;
    if (!pod.next || *pod.next > clock_.Now()) continue;
    EndStage(entry->first, pod);
    if (pod.stage == Stage::kFinished && pod.pod == nullptr) pods_.erase(entry);
    return true;
  }
  return false;
}

// Has the pod's claims prepared before its start, and unprepared after its end. Returns true if
// nothing is left to do, or to wait for.
bool VirtualNode::SettleClaims(const std::string& uid, RunningPod& pod) {
  const bool starts = pod.stage == Stage::kAdmitted;
  if (starts && (pod.prepared || !pod.pod->HasClaims())) return true;
  if (!starts) pod.prepared = false;
  const Result<Duration> wait = starts ? claims_.Prepare(*pod.pod) : claims_.Unprepare(uid);
  if (!wait.ok()) {
    log_.Note(name(),
              fmt::format("cannot {} {}: {}", starts ? "start" : "end",
                          pod.pod == nullptr ? "a pod" : pod.pod->Key(), wait.status().ToString()));
    pod.next = clock_.Now() + times_.claims_retry;
    return false;
  }
  if (!starts && *wait == Duration{}) return true;
  pod.prepared = starts;
  pod.next = clock_.Now() + *wait;
  if (starts) *pod.next += times_.start + InitTime(*pod.pod);
  return false;
}

void VirtualNode::EndStage(const std::string& uid, RunningPod& pod) {
  pod.next = std::nullopt;
  if (!SettleClaims(uid, pod)) return;
  if (pod.stage == Stage::kAdmitted) return StartContainers(pod);
  pod.devices.clear();
  pod.status.finished = clock_.Now();
  if (pod.stage == Stage::kStopping) {
    // A kubelet reports that a deleted pod has ended before it removes the object (kubernetes
    // pkg/kubelet/kubelet_pods.go, getPhase, since 1.27). SIGTERM ends containers with 143.
    pod.remove_object = pod.write_status = pod.pod != nullptr;
    pod.status.stage = PodStage::kFailed;
    log_.Note(name(), fmt::format("stopped {}", pod.pod == nullptr ? "a pod" : pod.pod->Key()));
  } else {
    pod.status.stage = PodStage::kSucceeded;
    pod.write_status = true;
    log_.Note(name(), fmt::format("finished {}", pod.pod->Key()));
  }
  pod.stage = Stage::kFinished;
}

void VirtualNode::StartContainers(RunningPod& pod) {
  const Time now = clock_.Now();
  std::erase_if(pod.devices, [&](const auto& device) { return IsOf(pod.ending, device); });
  pod.ending.clear();
  pod.status.devices = pod.devices;
  pod.stage = Stage::kRunning;
  pod.status.stage = PodStage::kRunning;
  pod.status.initialized = true;
  pod.status.started = now;
  pod.status.pod_ip = PodIp(next_pod_ip_++);
  if (const auto run = RunTime(*pod.pod)) pod.next = now + *run;
  pod.write_status = true;
  log_.Note(name(), fmt::format("runs {}", pod.pod->Key()));
}

Status VirtualNode::Offer(const std::vector<kubelet::OfferedDevice>& devices) {
  if (down_until_ || removed_) return {Code::kUnavailable, "the kubelet is not running"};
  if (devices_.Offer(devices) && registered_) {
    const auto syncs = (clock_.Now() - ready_since_) / times_.sync;
    status_at_ = std::min(status_at_, ready_since_ + (syncs + 1) * times_.sync);
  }
  return Status::Ok();
}

Result<std::vector<kubelet::DeviceAssignment>> VirtualNode::List() {
  if (down_until_ || removed_) return Status(Code::kUnavailable, "the kubelet is not running");
  std::vector<kubelet::DeviceAssignment> held;
  for (const auto& [uid, pod] : pods_) {
    if (pod.pod == nullptr) continue;
    for (const auto& device : pod.devices) {
      if (!IsOf(pod.ending, device)) held.push_back(device);
    }
  }
  return held;
}

Result<std::vector<kubelet::ClaimAssignment>> VirtualNode::ListClaims() {
  if (down_until_ || removed_) return Status(Code::kUnavailable, "the kubelet is not running");
  std::vector<kubelet::ClaimAssignment> claims;
  for (const auto& [uid, pod] : pods_) {
    if (pod.pod == nullptr) continue;
    for (std::string& device : claims_.DevicesOf(uid)) {
      const auto& containers = pod.pod->containers;
      claims.push_back({pod.pod->meta.ns, pod.pod->meta.name,
                        containers.empty() ? "" : containers.front().name, kGpuDriver,
                        std::move(device)});
    }
  }
  return claims;
}

Result<std::vector<kubelet::OfferedDevice>> VirtualNode::Allocatable() {
  if (down_until_ || removed_) return Status(Code::kUnavailable, "the kubelet is not running");
  std::vector<kubelet::OfferedDevice> healthy(devices_.offered().begin(), devices_.offered().end());
  std::erase_if(healthy, [](const auto& device) { return !device.healthy; });
  return healthy;
}

Result<std::map<std::string, bool>> VirtualNode::Read() {
  if (down_until_ || removed_) return Status(Code::kNotFound, "the node is down");
  std::map<std::string, bool> cgroups;
  for (const auto& [uid, pod] : pods_) {
    if (pod.stage != Stage::kFinished) cgroups[uid] = true;
  }
  return cgroups;
}

void VirtualNode::Reboot() {
  if (removed_) return;
  log_.Note(name(), "reboots");
  StartKubelet();
  down_until_ = clock_.Now() + times_.boot;
}

bool VirtualNode::BootIfDue() {
  if (!down_until_ || clock_.Now() < *down_until_) return false;
  down_until_ = std::nullopt;
  ready_since_ = status_at_ = clock_.Now();
  log_.Note(name(), "is up again");
  return true;
}

void VirtualNode::Remove() {
  removed_ = true;
  pods_.clear();
  changes_.clear();
  devices_.Forget();
  log_.Note(name(), "is gone");
}

}  // namespace nos::sim
