#include "agent/claims/driver.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "agent/metrics.h"
#include "base/log.h"

namespace nos::agent {
namespace {

constexpr size_t kMaxWaiters = 16;  // repeated calls for one claim, of which kubelets make few
constexpr Duration kReportPause = std::chrono::seconds(2);

Status Busy(const std::string& what) { return {Code::kUnavailable, what}; }

// A failure that may pass without another allocation.
bool IsTransient(const Status& status) {
  switch (status.code()) {
    case Code::kUnavailable:
    case Code::kDeadline:
    case Code::kConflict:
    case Code::kExhausted:
    case Code::kInternal:
      return true;
    default:
      return false;
  }
}

std::string CdiNameOf(const std::string& uid, const ClaimedDevice& device) {
  return uid + "-" + device.device;
}

}  // namespace

ClaimDriver::ClaimDriver(ClaimDriverOptions options, ClaimCollaborators collaborators)
    : options_(std::move(options)), others_(std::move(collaborators)), shared_(others_.daemons) {}

Status ClaimDriver::Load() {
  NOS_RETURN_IF_ERROR(LoadClaims());
  RestoreShares();
  return Status::Ok();
}

Status ClaimDriver::LoadClaims() {
  NOS_ASSIGN(PreparedClaims claims, ReadCheckpoint(options_.checkpoint));
  const std::lock_guard lock(mutex_);
  prepared_ = std::move(claims);
  loaded_ = true;
  CountPrepared();
  if (!options_.metadata_folder.empty()) RemoveOtherMetadata(options_.metadata_folder, prepared_);
  // The file shows the next agent that claims may have devices here.
  if (prepared_.empty()) return WriteCheckpoint(options_.checkpoint, prepared_);
  // Containers that restart need it; the kubelet does not ask again. KeepSpec repairs what is
  // missing.
  if (const Status written = WriteSpec(); !written.ok()) {
    Log(LogLevel::kWarn, "failed to write CDI specification of prepared claims",
        {{"error", written.message()}});
  }
  return Status::Ok();
}

Status ClaimDriver::KeepSpec() const {
  const std::lock_guard lock(mutex_);
  return prepared_.empty() ? Status::Ok() : WriteSpec(/*complete=*/true);
}

void ClaimDriver::SetGpus(std::vector<dra::GpuOfDriver> gpus) {
  KnowGpus(std::move(gpus));
  RestoreShares();
}

void ClaimDriver::KnowGpus(std::vector<dra::GpuOfDriver> gpus) {
  const std::lock_guard lock(mutex_);
  devices_.Set(std::move(gpus));
}

// Once, when both the claims and the GPUs are known.
void ClaimDriver::RestoreShares() {
  PreparedClaims prepared;
  KnownDevices devices;
  {
    const std::lock_guard lock(mutex_);
    if (!loaded_ || devices_.empty() || std::exchange(shares_restored_, true)) return;
    prepared = prepared_;
    devices = devices_;
  }
  shared_.Restore(devices, prepared);
}

void ClaimDriver::Prepare(const kubelet::ClaimReference& claim, Prepared done) {
  std::unique_lock lock(mutex_);
  const auto refuse = [&](Status why) {
    lock.unlock();
    done(std::move(why));
  };
  if (!loaded_) return refuse(Busy("the driver does not know yet which claims are prepared"));
  Preparation& preparation = preparing_[claim.uid];
  std::vector<Prepared>& waiters = preparation.waiters;
  if (waiters.size() >= kMaxWaiters) return refuse(Busy("the claim is being prepared"));
  waiters.push_back(std::move(done));
  if (waiters.size() > 1) return;  // answered with the first
  preparation.began = std::chrono::steady_clock::now();
  lock.unlock();
  others_.call([this, claim](kube::Client& client) {
    Begin(claim, client.Get(kResourceClaims, claim.ns, claim.name));
  });
}

void ClaimDriver::Begin(const kubelet::ClaimReference& claim, const Result<Json>& object) {
  const auto allocated = Allocation(claim, object);
  if (!allocated.ok()) return End(claim, allocated.status());
  if (Status recorded = Record(*allocated); !recorded.ok()) return End(claim, recorded);
  MakeAll(claim.uid, allocated->devices, [this, claim](const Made& made) { End(claim, made); });
}

// Returns the claim's devices on this node. While the API server does not answer, a claim that is
// prepared stays as it is: its pod may be starting again.
Result<AllocatedClaim> ClaimDriver::Allocation(const kubelet::ClaimReference& claim,
                                               const Result<Json>& object) const {
  if (!object.ok()) {
    const Code code = object.status().code();
    const std::lock_guard lock(mutex_);
    const auto known = prepared_.find(claim.uid);
    const bool silent = code == Code::kUnavailable || code == Code::kDeadline;
    if (silent && known != prepared_.end() && known->second.ready) {
      return AllocatedClaim{claim.ns,
                            claim.name,
                            claim.uid,
                            "",
                            known->second.devices,
                            false,
                            known->second.pod_claim};
    }
    return object.status().Within("cannot read the ResourceClaim");
  }
  AllocatedClaim allocated;
  NOS_RETURN_IF_ERROR(ReadAllocatedClaim(options_.node, JsonSource(*object), allocated));
  if (allocated.uid != claim.uid) {
    return Status(Code::kConflict, "the claim was replaced by another one of the same name");
  }
  if (allocated.devices.empty()) {
    return Status(Code::kConflict,
                  fmt::format("the claim has no device of {} on this node", dra::kNosDriver));
  }
  return allocated;
}

// Writes the claim into the checkpoint before anything is done for it. This is the last check that
// no two claims get the same device: the API server has none.
Status ClaimDriver::Record(const AllocatedClaim& claim) {
  const std::lock_guard lock(mutex_);
  for (const ClaimedDevice& device : claim.devices) {
    if (devices_.Find(device.device) == nullptr) {
      return {Code::kUnavailable, "this node has no device " + device.device};
    }
    for (const auto& [uid, other] : prepared_) {
      if (uid == claim.uid) continue;
      for (const ClaimedDevice& held : other.devices) {
        if (device.admin || held.admin || !devices_.Overlap(device, held)) continue;
        return {Code::kConflict,
                fmt::format("claim {}/{} uses {} already", other.ns, other.name, held.device)};
      }
    }
  }
  NOS_RETURN_IF_ERROR(devices_.CheckShares(claim, prepared_));
  const auto known = prepared_.find(claim.uid);
  if (known != prepared_.end()) {
    if (std::ranges::equal(known->second.devices, claim.devices, &ClaimedDevice::SameAllocation)) {
      known->second.pod_claim = claim.pod_claim;  // former versions have not stored it
      return Status::Ok();
    }
    if (known->second.ready) {
      return {Code::kConflict, "the claim is prepared with other devices"};
    }
  }
  PreparedClaims next = prepared_;
  next[claim.uid] = {claim.ns, claim.name, claim.uid, false, claim.devices, claim.pod_claim};
  NOS_RETURN_IF_ERROR(WriteCheckpoint(options_.checkpoint, next));
  prepared_ = std::move(next);
  return Status::Ok();
}

// Names of the devices shared by MPS that claims have or will have. Claims without a pod do not
// count if they are in the way of `wanted`, as in WorkFor.
std::set<std::string> ClaimDriver::SharedDevices(const ClaimedDevice* wanted) const {
  std::set<std::string> shared;
  const std::lock_guard lock(mutex_);
  const auto add = [&](const ClaimedDevice& device) {
    if (IsLimitedByMps(device)) shared.insert(device.device);
  };
  for (const auto& [uid, claim] : prepared_) std::ranges::for_each(claim.devices, add);
  for (const auto& [uid, claim] : allocated_) {
    for (const ClaimedDevice& device : claim.devices) {
      if (wanted == nullptr || !devices_.Overlap(device, *wanted)) add(device);
    }
  }
  return shared;
}

// Calls `done` once, after the queues of all GPUs concerned.
void ClaimDriver::MakeAll(const std::string& uid, const std::vector<ClaimedDevice>& devices,
                          std::function<void(Made)> done) {
  struct Batch {
    std::mutex mutex;
    std::vector<ClaimedDevice> made;
    Status failed;
    size_t missing = 0;
    std::function<void(Made)> done;
  };
  auto batch = std::make_shared<Batch>();
  batch->made = devices;
  batch->missing = devices.size();
  batch->done = std::move(done);
  for (size_t i = 0; i < devices.size(); ++i) {
    const auto finish = [batch, i](const Result<ClaimedDevice>& one) {
      {
        const std::lock_guard lock(batch->mutex);
        if (one.ok()) {
          batch->made[i] = *one;
        } else if (batch->failed.ok()) {
          batch->failed = one.status();
        }
        if (--batch->missing > 0) return;
      }
      batch->failed.ok() ? batch->done(std::move(batch->made)) : batch->done(batch->failed);
    };
    int gpu = -1;
    {
      const std::lock_guard lock(mutex_);
      if (const dra::DriverDevice* known = devices_.Find(devices[i].device)) gpu = known->gpu;
    }
    const bool queued = gpu >= 0 && others_.run(gpu, [this, uid, device = devices[i], finish] {
      finish(MakeOne(uid, device));
    });
    if (queued) continue;
    finish(gpu < 0 ? NotFound("this node has no device " + devices[i].device)
                   : Busy(fmt::format("GPU {} has too much to do", gpu)));
  }
}

// Runs in the queue of the GPU.
Result<ClaimedDevice> ClaimDriver::MakeOne(const std::string& uid, const ClaimedDevice& device) {
  NOS_ASSIGN(const DeviceWork work, WorkFor(uid, device));
  device::Backend& backend = others_.backend(work.gpu);
  // Daemons of former shares have the GPU or its instances open.
  NOS_RETURN_IF_ERROR(shared_.EndUnused(work.gpu, SharedDevices(&device), backend));
  NOS_ASSIGN(const MadeDevice made, MakeDevice(work, others_.held, backend));
  ClaimedDevice with = device;
  with.gpu_uuid = work.gpu_uuid;
  with.instance_uuid = made.instance_uuid;
  with.instance = made.instance;
  if (!IsLimitedByMps(device)) return with;
  dra::GpuOfDriver gpu;
  dra::DriverDevice known;
  {
    const std::lock_guard lock(mutex_);
    if (devices_.Find(device.device) == nullptr)
      return NotFound("this node has no device " + device.device);
    known = *devices_.Find(device.device);
    gpu = devices_.gpus().at(known.gpu);
  }
  NOS_RETURN_IF_ERROR(shared_.Serve(with, gpu, known, backend));
  return with;
}

Result<DeviceWork> ClaimDriver::WorkFor(const std::string& uid, const ClaimedDevice& device) const {
  const std::lock_guard lock(mutex_);
  const dra::DriverDevice* known = devices_.Find(device.device);
  if (known == nullptr) return NotFound("this node has no device " + device.device);
  const dra::GpuOfDriver& gpu = devices_.gpus().at(known->gpu);
  DeviceWork work{known->gpu, gpu.uuid, gpu.model, known->placement};
  work.create = !device.admin;
  for (const auto& [other, claim] : prepared_) {
    for (const ClaimedDevice& held : claim.devices) {
      const bool same = held.device == device.device;
      if (same && (other == uid || held.admin || device.admin || devices_.IsShared(device)))
        continue;
      AddClaimed({held}, work);
    }
  }
  // Claims without a pod on this node so far. If one of their devices overlaps, a scheduler made a
  // mistake: the claim that is prepared first has it.
  for (const auto& [other, claim] : allocated_) {
    if (prepared_.contains(other)) continue;
    for (const ClaimedDevice& held : claim.devices) {
      const bool same = held.device == device.device;
      if (!same && !devices_.Overlap(held, device)) AddClaimed({held}, work);
    }
  }
  return work;
}

void ClaimDriver::AddClaimed(const std::vector<ClaimedDevice>& devices, DeviceWork& work) const {
  for (const ClaimedDevice& held : devices) {
    const dra::DriverDevice* known = devices_.Find(held.device);
    if (known == nullptr || known->gpu != work.gpu) continue;
    if (known->placement) {
      work.claimed.push_back(*known->placement);
    } else {
      work.whole_claimed = true;
    }
  }
}

void ClaimDriver::End(const kubelet::ClaimReference& claim, const Made& made) {
  const Status failed = made.ok() ? Publish(claim.uid, *made) : made.status();
  Preparation preparation;
  std::vector<kubelet::PreparedDevice> answer;
  {
    const std::lock_guard lock(mutex_);
    const auto known = prepared_.find(claim.uid);
    if (!failed.ok() && known != prepared_.end() && !known->second.ready) {
      // No container has it. If this cannot be written, the devices stay reserved for the claim.
      PreparedClaims next = prepared_;
      const PreparedClaim failed_claim = known->second;
      next.erase(claim.uid);
      if (WriteCheckpoint(options_.checkpoint, next).ok()) prepared_ = std::move(next);
      RemoveMetadata(options_.metadata_folder, failed_claim);
    }
    preparation = std::move(preparing_[claim.uid]);
    preparing_.erase(claim.uid);
  }
  if (failed.ok()) answer = AnswerFor(claim.uid);
  Log(failed.ok() ? LogLevel::kInfo : LogLevel::kWarn,
      failed.ok() ? "prepared ResourceClaim" : "failed to prepare ResourceClaim",
      {{"claim", claim.ns + "/" + claim.name}, {"error", failed.message()}});
  Count("prepare", failed, preparation.began);
  for (const Prepared& done : preparation.waiters) {
    if (failed.ok()) {
      done(answer);
    } else {
      done(failed);
    }
  }
}

// The first device of each request brings the file with the metadata of all.
std::vector<kubelet::PreparedDevice> ClaimDriver::AnswerFor(const std::string& uid) const {
  const std::lock_guard lock(mutex_);
  std::vector<kubelet::PreparedDevice> answer;
  const auto known = prepared_.find(uid);
  if (known == prepared_.end()) return answer;
  std::vector<MetadataFile> files = FilesOf(known->second);
  for (const ClaimedDevice& device : known->second.devices) {
    std::vector<std::string> ids{fmt::format("{}={}", kClaimCdiKind, CdiNameOf(uid, device))};
    const auto file = std::ranges::find(files, device.request, &MetadataFile::request);
    if (file != files.end()) {
      ids.push_back(fmt::format("{}={}", kMetadataCdiKind, file->cdi_name));
      files.erase(file);
    }
    answer.push_back(
        {{device.request}, options_.node, device.device, std::move(ids), device.share_id});
  }
  return answer;
}

// The specification is there before the kubelet is answered, and before the checkpoint says so.
Status ClaimDriver::Publish(const std::string& uid, std::vector<ClaimedDevice> made) {
  const std::lock_guard lock(mutex_);
  const auto claim = prepared_.find(uid);
  if (claim == prepared_.end()) return Internal("the claim is not in the checkpoint");
  const PreparedClaim before = claim->second;
  for (const ClaimedDevice& device : made) {
    NOS_RETURN_IF_ERROR(
        device::DeviceNodesOf(device.gpu_uuid, device.instance, options_.host).status());
  }
  claim->second.devices = std::move(made);
  claim->second.ready = true;
  Status written = WriteFilesOf(claim->second);
  if (written.ok()) written = WriteSpec();
  if (written.ok()) written = WriteCheckpoint(options_.checkpoint, prepared_);
  if (!written.ok()) claim->second = before;
  return written;
}

Status ClaimDriver::WriteSpec(bool complete) const {
  device::CdiSpec spec;
  spec.kind = kClaimCdiKind;
  for (const auto& [uid, claim] : prepared_) {
    if (!claim.ready) continue;
    for (const ClaimedDevice& device : claim.devices) {
      const Status added = AddTo(spec, CdiNameOf(uid, device), device);
      if (!added.ok() && complete) return added;
    }
  }
  if (spec.devices.empty()) {
    NOS_RETURN_IF_ERROR(device::RemoveCdiSpec(options_.cdi_folder, kClaimCdiKind));
    return WriteMetadataSpec();
  }
  NOS_ASSIGN(spec.driver, device::FindDriverFiles(options_.host));
  if (!spec.driver.missing_node.empty()) {
    return NotFound(spec.driver.missing_node + ": load the kernel module on the node");
  }
  NOS_RETURN_IF_ERROR(device::WriteCdiSpec(options_.cdi_folder, spec));
  return WriteMetadataSpec();
}

// A container does not start if its device is not there, which is better than without its limit.
Status ClaimDriver::AddTo(device::CdiSpec& spec, const std::string& name,
                          const ClaimedDevice& device) const {
  NOS_ASSIGN(auto nodes, device::DeviceNodesOf(device.gpu_uuid, device.instance, options_.host));
  if (IsLimitedByMps(device)) {
    const dra::DriverDevice* known = devices_.Find(device.device);
    const int64_t total =
        known == nullptr ? 0 : dra::MemoryOf(devices_.gpus().at(known->gpu), *known);
    NOS_ASSIGN(spec.edits[name], shared_.EditsFor(device, total));
  }
  spec.devices[name] = std::move(nodes);
  return Status::Ok();
}

// The files of the claim that exist.
std::vector<MetadataFile> ClaimDriver::FilesOf(const PreparedClaim& claim) const {
  if (options_.metadata_folder.empty()) return {};
  std::vector<MetadataFile> files = MetadataFilesOf(options_.metadata_folder, claim);
  std::erase_if(files, [](const auto& file) { return access(file.host_path.c_str(), F_OK) != 0; });
  return files;
}

// Writes nothing while a device of the claim is not known yet.
Status ClaimDriver::WriteFilesOf(const PreparedClaim& claim) const {
  const auto is_unknown = [this](const ClaimedDevice& device) {
    return devices_.Find(device.device) == nullptr;
  };
  if (options_.metadata_folder.empty() || std::ranges::any_of(claim.devices, is_unknown)) {
    return Status::Ok();
  }
  return WriteMetadata(options_.metadata_folder, claim, options_.node,
                       [this](const ClaimedDevice& device) { return AttributesOf(device); });
}

Status ClaimDriver::WriteMetadataSpec() const {
  const std::string& folder = options_.metadata_folder;
  if (folder.empty()) return Status::Ok();
  device::CdiSpec spec;
  spec.kind = kMetadataCdiKind;
  for (const auto& [uid, claim] : prepared_) {
    if (!claim.ready) continue;
    const bool complete = FilesOf(claim).size() == MetadataFilesOf(folder, claim).size();
    if (!complete) NOS_RETURN_IF_ERROR(WriteFilesOf(claim));
    for (const MetadataFile& file : FilesOf(claim)) {
      spec.devices[file.cdi_name];
      spec.files[file.cdi_name].push_back({file.host_path, file.container_path});
    }
  }
  if (spec.devices.empty()) return device::RemoveCdiSpec(options_.cdi_folder, kMetadataCdiKind);
  return device::WriteCdiSpec(options_.cdi_folder, spec);
}

// The announced attributes, and the UUID of the instance as a container sees it. REQUIRES: the
// device is known.
JsonObject ClaimDriver::AttributesOf(const ClaimedDevice& device) const {
  const dra::DriverDevice& known = *devices_.Find(device.device);
  JsonObject attributes = dra::AttributesOf(devices_.gpus().at(known.gpu), {}, known);
  if (!device.instance_uuid.empty()) {
    attributes["uuid"] = JsonObject{{"string", device.instance_uuid}};
  }
  if (device.instance) attributes["instanceId"] = JsonObject{{"int", *device.instance}};
  return attributes;
}

void ClaimDriver::Unprepare(const kubelet::ClaimReference& claim, Unprepared done) {
  const SteadyTime began = std::chrono::steady_clock::now();
  Status status;
  {
    const std::lock_guard lock(mutex_);
    const auto known = prepared_.find(claim.uid);
    if (!loaded_) {
      status = Busy("the driver does not know yet which claims are prepared");
    } else if (preparing_.contains(claim.uid)) {
      status = Busy("the claim is being prepared");
    } else if (known != prepared_.end()) {
      const PreparedClaim ended = known->second;
      PreparedClaims next = prepared_;
      next.erase(claim.uid);
      status = WriteCheckpoint(options_.checkpoint, next);
      if (status.ok()) prepared_ = std::move(next);
      // A device in the specification that no claim names any more does no harm.
      if (status.ok()) (void)WriteSpec();
      if (status.ok()) RemoveMetadata(options_.metadata_folder, ended);
    }
  }
  Count("unprepare", status, began);
  others_.wake();
  done(status);
}

void ClaimDriver::Count(const char* operation, const Status& status, SteadyTime began) const {
  if (others_.metrics == nullptr) return;
  const MetricLabels labels{{"operation", operation}};
  others_.metrics->Count(kClaimOperations,
                         {{"operation", operation}, {"result", status.ok() ? "ok" : "error"}});
  others_.metrics->Observe(
      kClaimOperationDuration, labels,
      std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - began));
  const std::lock_guard lock(mutex_);
  CountPrepared();
}

void ClaimDriver::CountPrepared() const {
  if (others_.metrics == nullptr) return;
  const auto ready =
      std::ranges::count_if(prepared_, [](const auto& claim) { return claim.second.ready; });
  others_.metrics->Set(kPreparedClaims, {}, static_cast<double>(ready));
}

void ClaimDriver::Discard(const std::string& device) {
  int gpu = -1;
  {
    const std::lock_guard lock(mutex_);
    if (const dra::DriverDevice* known = devices_.Find(device)) gpu = known->gpu;
  }
  if (gpu < 0) return;
  // A queue that is full is asked again with the next call.
  (void)others_.run(gpu, [this, device] {
    const ClaimedDevice wanted{"", device};
    const auto work = WorkFor("", wanted);
    Status removed = work.status();
    if (work.ok()) {
      removed = shared_.EndUnused(work->gpu, SharedDevices(), others_.backend(work->gpu));
    }
    if (work.ok() && removed.ok())
      removed = RemoveDevice(*work, others_.held, others_.backend(work->gpu));
    if (removed.ok() || removed.code() == Code::kConflict) return;
    Log(LogLevel::kWarn, "failed to remove device with a fault",
        {{"device", device}, {"error", removed.message()}});
  });
}

void ClaimDriver::EndUnusedDaemons() {
  for (const int gpu : shared_.GpusWithUnused(SharedDevices())) {
    // A queue that is full is asked again with the next call.
    (void)others_.run(gpu, [this, gpu] {
      const Status ended = shared_.EndUnused(gpu, SharedDevices(), others_.backend(gpu));
      if (ended.ok()) return others_.wake();
      Log(LogLevel::kWarn, "failed to end MPS daemons of GPU",
          {{"gpu", std::to_string(gpu)}, {"error", ended.message()}});
    });
  }
}

void ClaimDriver::SetAllocated(std::map<std::string, AllocatedClaim> claims, Time now) {
  std::vector<std::pair<AllocatedClaim, Status>> begin;
  {
    const std::lock_guard lock(mutex_);
    allocated_ = std::move(claims);
    std::erase_if(creations_, [&](const auto& entry) {
      const auto claim = allocated_.find(entry.first);
      return !entry.second.running && (claim == allocated_.end() || !claim->second.waits);
    });
    for (const auto& [uid, claim] : allocated_) {
      if (!loaded_ || !claim.waits || preparing_.contains(uid)) continue;
      Creation& creation = creations_[uid];
      if (creation.running) continue;
      if (!std::ranges::equal(creation.devices, claim.devices, &ClaimedDevice::SameAllocation)) {
        creation = {claim.devices};
      }
      if (creation.next > now) continue;
      creation.running = true;
      creation.began = std::chrono::steady_clock::now();
      begin.emplace_back(claim, devices_.CheckShares(claim, prepared_));
    }
  }
  for (const auto& [claim, valid] : begin) {
    if (!valid.ok()) {
      Created(claim.uid, claim, valid, now);
      continue;
    }
    MakeAll(claim.uid, claim.devices, [this, allocated = claim, now](const Made& made) {
      Created(allocated.uid, allocated, made.status(), now);
    });
  }
}

void ClaimDriver::Created(const std::string& uid, const AllocatedClaim& claim, const Status& status,
                          Time now) {
  SteadyTime began;
  {
    const std::lock_guard lock(mutex_);
    const auto creation = creations_.find(uid);
    if (creation == creations_.end()) return;
    creation->second.running = false;
    began = creation->second.began;
    const bool again = !status.ok() && IsTransient(status) &&
                       ++creation->second.failures < options_.creation_attempts;
    if (again) {
      creation->second.next = now + options_.creation_pause.After(creation->second.failures);
    } else {
      // Until the claim shows the report, it may have to be written again.
      creation->second.next = now + kReportPause;
      reports_.push_back({claim, status});
    }
  }
  Count("create", status, began);
  others_.wake();
}

std::vector<CreationReport> ClaimDriver::TakeReports() {
  const std::lock_guard lock(mutex_);
  return std::exchange(reports_, {});
}

std::optional<Time> ClaimDriver::NextDue() const {
  const std::lock_guard lock(mutex_);
  std::optional<Time> due;
  for (const auto& [uid, creation] : creations_) {
    if (creation.running) continue;
    due = due ? std::min(*due, creation.next) : creation.next;
  }
  return due;
}

PreparedClaims ClaimDriver::prepared() const {
  const std::lock_guard lock(mutex_);
  return prepared_;
}

bool ClaimDriver::HasAllocated() const {
  const std::lock_guard lock(mutex_);
  return !allocated_.empty();
}

Status ClaimDriver::Forget() {
  const std::lock_guard lock(mutex_);
  if (!prepared_.empty() || !preparing_.empty()) return Busy("a claim has a device");
  if (!shared_.GpusWithUnused({}).empty()) return Busy("an MPS daemon of claims runs");
  loaded_ = shares_restored_ = false;
  allocated_.clear();
  creations_.clear();
  if (unlink(options_.checkpoint.c_str()) == 0 || errno == ENOENT) return Status::Ok();
  return {Code::kUnavailable, "cannot remove " + options_.checkpoint};
}

bool ClaimDriver::Idle() const {
  const std::lock_guard lock(mutex_);
  return prepared_.empty() && preparing_.empty();
}

}  // namespace nos::agent
