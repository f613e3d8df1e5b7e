#include "sim/world/node/claim_driver.h"

#include <fmt/format.h>

#include <algorithm>

#include "agent/node_modes.h"
#include "sim/world/node/claim_keeper.h"

namespace nos::sim {
namespace {

constexpr Duration kRetry = std::chrono::seconds(1);

const kube::Resource kSlices{"resource.k8s.io", "v1", "resourceslices", "ResourceSlice", false};
const kube::Resource kClasses{"resource.k8s.io", "v1", "deviceclasses", "DeviceClass", false};

const JsonArray& ListOf(const Json* list) {
  static const JsonArray kNone;
  return list != nullptr && list->is_array() ? list->get_array() : kNone;
}

Status CreateOnce(kube::Client& client, const kube::Resource& resource, const Json& object) {
  const Status created = client.Create(resource, "", object).status();
  return created.code() == Code::kAlreadyExists ? Status::Ok() : created;
}

}  // namespace

ClaimDriver::ClaimDriver(std::string node, device::SimGpus& gpus,
                         std::vector<const gpu::Model*> models, kube::Transport& api,
                         const Clock& clock, EventLog& log, ReportProblem report_problem)
    : node_(std::move(node)),
      name_("driver " + node_),
      gpus_(gpus),
      models_(std::move(models)),
      client_(api),
      clock_(clock),
      log_(log),
      report_problem_(std::move(report_problem)) {}

bool ClaimDriver::Step() {
  if (announced_ || clock_.Now() < retry_at_) return false;
  if (const Status written = Announce(); !written.ok()) retry_at_ = clock_.Now() + kRetry;
  return true;
}

std::optional<Time> ClaimDriver::NextWake() const {
  if (announced_) return std::nullopt;
  return std::max(retry_at_, clock_.Now());
}

std::vector<AnnouncedGpu> ClaimDriver::Announced() const {
  std::vector<AnnouncedGpu> gpus;
  for (size_t i = 0; i < models_.size(); ++i) {
    const device::GpuInfo& info = gpus_.Info(static_cast<int>(i));
    gpus.push_back({models_[i], info.uuid, info.product, !agent::NeedsReset(*models_[i]), true});
  }
  return gpus;
}

void ClaimDriver::Begin() {
  ++generation_;
  written_ = 0;
  announced_ = false;
  retry_at_ = clock_.Now();
}

void ClaimDriver::Publish(Publication publication) {
  publication_ = std::move(publication);
  Begin();
}

void ClaimDriver::Vanish() {
  log_.Note(name_, "fault: vanishes");
  away_ = true;
  Begin();
}

void ClaimDriver::Return() {
  log_.Note(name_, "is back");
  away_ = false;
  Begin();
}

// Slice 0 has the counters if a GPU has placements, the next ones have the devices of a GPU each.
std::vector<Json> ClaimDriver::Slices(std::string_view node_uid) const {
  if (away_) return {};
  using enum Publication::Defect;
  std::vector<Json> slices = ResourceSlices(node_, node_uid, Announced());
  const size_t first = slices.size() - models_.size();
  for (size_t i = first; i < slices.size(); ++i) Change(slices[i], static_cast<int>(i - first));
  auto count = static_cast<int64_t>(slices.size());
  if (publication_.defect == kDuplicateDevice) {
    Json copy = slices.back();
    MakeObject(copy, "metadata")["name"] = fmt::format("{:05x}-{}-{}", count, kGpuDriver, node_);
    JsonObject& spec = MakeObject(copy, "spec");
    const JsonArray& devices = ListOf(Find(copy, "spec", "devices"));
    spec["devices"] = devices.empty() ? JsonArray() : JsonArray{Json(devices[0])};
    slices.push_back(std::move(copy));
    ++count;
  } else if (publication_.defect == kNoCounters && first > 0) {
    slices.erase(slices.begin());
    --count;
  } else if (publication_.defect == kMissingSlice) {
    slices.pop_back();
  }
  for (Json& slice : slices) {
    MakeObject(slice, "spec")["pool"] =
        JsonObject{{"name", node_}, {"generation", generation_}, {"resourceSliceCount", count}};
  }
  return slices;
}

void ClaimDriver::Change(Json& slice, int gpu) const {
  JsonObject& spec = MakeObject(slice, "spec");
  if (publication_.hidden_gpus.contains(gpu)) spec["devices"] = JsonArray();
  Json& devices = spec["devices"];
  if (!devices.is_array()) return;
  for (Json& device : devices.get_array()) {
    JsonObject& fields = device.get_object();
    if (publication_.tainted_gpus.contains(gpu)) {
      fields["taints"] = JsonArray{JsonObject{{"key", kFaultTaint}, {"effect", "NoSchedule"}}};
    }
    if (publication_.conditions) {
      fields["bindsToNode"] = true;
      fields["bindingConditions"] = JsonArray{kReadyCondition};
      fields["bindingFailureConditions"] = JsonArray{kFailedCondition};
    }
  }
}

Status ClaimDriver::Write(const Json& slice) {
  const std::string_view name = FindString(slice, "metadata", "name");
  const auto known = client_.Get(kSlices, "", name);
  if (known.status().code() == Code::kNotFound) return CreateOnce(client_, kSlices, slice);
  NOS_RETURN_IF_ERROR(known.status());
  Json next = slice;
  MakeObject(next, "metadata")["resourceVersion"] =
      FindString(*known, "metadata", "resourceVersion");
  return client_.Update(kSlices, "", next).status();
}

Status ClaimDriver::Announce() {
  NOS_ASSIGN(const Json node, client_.Get(kube::kNodes, "", node_));
  for (const Json& device_class : DeviceClasses()) {
    NOS_RETURN_IF_ERROR(CreateOnce(client_, kClasses, device_class));
  }
  const std::vector<Json> slices = Slices(FindString(node, "metadata", "uid"));
  while (written_ < slices.size()) {
    NOS_RETURN_IF_ERROR(Write(slices[written_]));
    ++written_;
    if (publication_.between > Duration{} && written_ < slices.size()) {
      retry_at_ = clock_.Now() + publication_.between;
      return Status::Ok();
    }
  }
  kube::ListOptions mine;
  mine.field_selector = "spec.nodeName=" + node_;
  NOS_ASSIGN(const kube::ObjectList all, client_.List(kSlices, "", mine));
  for (const Json& slice : all.items) {
    const std::string_view name = FindString(slice, "metadata", "name");
    const bool stays = FindString(slice, "spec", "driver") != kGpuDriver ||
                       std::ranges::any_of(slices, [&](const Json& wanted) {
                         return FindString(wanted, "metadata", "name") == name;
                       });
    if (stays) continue;
    const Status gone = client_.Delete(kSlices, "", name);
    if (gone.code() != Code::kNotFound) NOS_RETURN_IF_ERROR(gone);
  }
  announced_ = true;
  log_.Note(name_, away_ ? "has no slices" : "announces its devices");
  return Status::Ok();
}

// The time until the calls before this one have ended.
Result<Duration> ClaimDriver::TakeTurn() {
  const Duration wait = std::max(free_at_ - clock_.Now(), Duration{});
  if (wait > kPatience) return Status(Code::kDeadline, "the driver is busy with other claims");
  spent_ = {};
  return wait;
}

Result<Duration> ClaimDriver::Prepare(const ClaimRef& claim) {
  if (away_) return Status(Code::kUnavailable, "the driver is not registered");
  const auto known = prepared_.find(claim.uid);
  if (known != prepared_.end() && !known->second.ending) return Duration{};
  NOS_ASSIGN(const Duration wait, TakeTurn());
  if (known != prepared_.end()) NOS_RETURN_IF_ERROR(End(known->second));
  prepared_.erase(claim.uid);
  std::erase_if(leftovers_, [this](const Device& device) { return Destroy(device).ok(); });
  NOS_ASSIGN(std::vector<Device> devices, Granted(claim));
  for (const Device& device : devices) NOS_RETURN_IF_ERROR(CheckFree(device, claim.uid));
  for (size_t i = 0; i < devices.size(); ++i) {
    const Status created = Create(devices[i]);
    if (created.ok()) continue;
    while (i-- > 0) {
      if (!Destroy(devices[i]).ok()) leftovers_.push_back(devices[i]);
    }
    free_at_ = clock_.Now() + wait + spent_;
    return created;
  }
  free_at_ = clock_.Now() + wait + spent_;
  for (const Device& device : devices) {
    log_.Note(name_, fmt::format("prepares {} for claim {}", device.name, claim.name));
  }
  prepared_[claim.uid] = {claim, std::move(devices)};
  return wait + spent_;
}

Result<Duration> ClaimDriver::Unprepare(const std::string& uid) {
  const auto found = prepared_.find(uid);
  if (found == prepared_.end()) return Duration{};
  if (away_) return Status(Code::kUnavailable, "the driver is not registered");
  NOS_ASSIGN(const Duration wait, TakeTurn());
  const Status ended = End(found->second);
  free_at_ = clock_.Now() + wait + spent_;
  NOS_RETURN_IF_ERROR(ended);
  prepared_.erase(found);
  return wait + spent_;
}

// Destroys what is left of the claim's devices.
Status ClaimDriver::End(Prepared& claim) {
  claim.ending = true;
  while (!claim.devices.empty()) {
    const Device& device = claim.devices.back();
    NOS_RETURN_IF_ERROR(Destroy(device));
    log_.Note(name_, fmt::format("unprepares {} of claim {}", device.name, claim.claim.name));
    claim.devices.pop_back();
  }
  return Status::Ok();
}

// The devices of this driver in the claim's allocation.
Result<std::vector<ClaimDriver::Device>> ClaimDriver::Granted(const ClaimRef& claim) {
  NOS_ASSIGN(const Json object, client_.Get(kResourceClaims, claim.ns, claim.name));
  if (FindString(object, "metadata", "uid") != claim.uid) {
    return NotFound(fmt::format("claim {} was replaced", claim.name));
  }
  const Json* allocation = Find(object, "status", "allocation");
  if (allocation == nullptr || allocation->is_null()) {
    return NotFound(fmt::format("claim {} is not allocated", claim.name));
  }
  std::vector<Device> devices;
  for (const Json& result : ListOf(Find(*allocation, "devices", "results"))) {
    const Json* admin = Find(result, "adminAccess");
    const bool monitors = admin != nullptr && *admin == true;
    if (FindString(result, "driver") != kGpuDriver || monitors) continue;
    Device device;
    device.name = FindString(result, "device");
    const auto id = ParseDeviceName(device.name);
    const bool mine = FindString(result, "pool") == node_ && id &&
                      static_cast<size_t>(id->gpu) < models_.size() &&
                      (!id->nvml_id || PlacementOf(*id, *models_[static_cast<size_t>(id->gpu)]));
    if (!mine) {
      return NotFound(fmt::format("no device {} in pool {}", device.name, node_));
    }
    if (publication_.hidden_gpus.contains(id->gpu)) {
      return Status(Code::kUnavailable, fmt::format("device {} is lost", device.name));
    }
    device.id = *id;
    devices.push_back(std::move(device));
  }
  return devices;
}

bool ClaimDriver::Overlap(const DeviceId& a, const DeviceId& b) const {
  if (a.gpu != b.gpu) return false;
  if (!a.nvml_id || !b.nvml_id) return true;
  const gpu::Model& model = *models_[static_cast<size_t>(a.gpu)];
  const auto a_place = PlacementOf(a, model), b_place = PlacementOf(b, model);
  if (!a_place || !b_place) return false;
  const int a_slots = model.profile(a_place->profile).slots;
  const int b_slots = model.profile(b_place->profile).slots;
  return a.start < b.start + b_slots && b.start < a.start + a_slots;
}

Status ClaimDriver::CheckFree(const Device& device, const std::string& uid) {
  for (const auto& [other_uid, holder] : prepared_) {
    if (other_uid == uid) continue;
    for (const Device& other : holder.devices) {
      if (!Overlap(device.id, other.id)) continue;
      ReportOverlap(device, other, holder);
      return {Code::kUnavailable, fmt::format("{} overlaps with {} of claim {}", device.name,
                                              other.name, holder.claim.name)};
    }
  }
  return Status::Ok();
}

// A claim that lost its allocation while its pod still ran is no fault of an allocator: the pod was
// deleted by force.
void ClaimDriver::ReportOverlap(const Device& device, const Device& other, const Prepared& holder) {
  const auto claim = client_.Get(kResourceClaims, holder.claim.ns, holder.claim.name);
  if (!claim.ok() || FindString(*claim, "metadata", "uid") != holder.claim.uid) return;
  for (const Json& result : ListOf(Find(*claim, "status", "allocation", "devices", "results"))) {
    if (FindString(result, "pool") != node_ || FindString(result, "device") != other.name) continue;
    report_problem_(fmt::format("{}: device given twice: {} overlaps with {}, which claim {} has",
                                node_, device.name, other.name, holder.claim.name));
    return;
  }
}

Status ClaimDriver::Create(Device& device) {
  const int index = device.id.gpu;
  const gpu::Model& model = *models_[static_cast<size_t>(index)];
  if (!device.id.nvml_id) {
    device.uuid = gpus_.Info(index).uuid;
    return Status::Ok();
  }
  if (!gpus_.Info(index).mig_enabled) NOS_RETURN_IF_ERROR(gpus_.EnableMig(index));
  const auto placement = PlacementOf(device.id, model);
  if (!placement) return NotFound(fmt::format("no device {} in pool {}", device.name, node_));
  const std::string& profile = model.profile(placement->profile).name;
  const auto created = gpus_.Create(index, profile, placement->start);
  NOS_RETURN_IF_ERROR(created.status());
  device.uuid = created->uuid;
  device.instance = created->id;
  return Status::Ok();
}

Status ClaimDriver::Destroy(const Device& device) {
  if (!device.id.nvml_id) return Status::Ok();
  const int index = device.id.gpu;
  NOS_RETURN_IF_ERROR(gpus_.Destroy(index, device.instance));
  const bool last = gpus_.Truth(index).empty();
  if (!last || agent::NeedsReset(*models_[static_cast<size_t>(index)])) return Status::Ok();
  return gpus_.DisableMig(index);
}

void ClaimDriver::Forget() {
  prepared_.clear();
  leftovers_.clear();
  free_at_ = {};
}

bool ClaimDriver::Holds(std::string_view uuid) const {
  return std::ranges::any_of(prepared_, [&](const auto& entry) {
    return std::ranges::any_of(entry.second.devices,
                               [&](const Device& device) { return device.uuid == uuid; });
  });
}

std::map<std::string, std::string> ClaimDriver::Held() const {
  std::map<std::string, std::string> held;
  for (const auto& [uid, prepared] : prepared_) {
    for (const Device& device : prepared.devices) {
      held[device.uuid] = kube::KeyOf(prepared.claim.ns, prepared.claim.name);
    }
  }
  return held;
}

bool ClaimDriver::HasPrepared(const std::string& claim_uid, std::string_view uuid) const {
  const auto found = prepared_.find(claim_uid);
  return found != prepared_.end() &&
         std::ranges::count(found->second.devices, uuid, &Device::uuid) > 0;
}

std::vector<std::string> ClaimDriver::PreparedFor(const std::string& claim_uid) const {
  std::vector<std::string> names;
  const auto found = prepared_.find(claim_uid);
  if (found == prepared_.end()) return names;
  for (const Device& device : found->second.devices) names.push_back(device.name);
  std::ranges::sort(names);
  return names;
}

}  // namespace nos::sim
