#include "device/mig_parts.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "base/text.h"

namespace nos::device {
namespace {

constexpr std::string_view kCount = "mps", kMigPrefix = "MIG-";
constexpr size_t kMaxUuid = 48;
constexpr unsigned kNumberShift = 24;  // the driver's ids are below 2^24
constexpr uint32_t kDriverIds = (uint32_t{1} << kNumberShift) - 1;

// Accepts no sign and no leading zeros.
std::optional<int> Number(std::string_view text, int least, int most) {
  const auto number = ParseInt(text);
  if (!number || *number < least || *number > most) return std::nullopt;
  return std::to_string(*number) == text ? std::optional(static_cast<int>(*number)) : std::nullopt;
}

const gpu::Model* ModelOf(const GpuInfo& info, const gpu::Catalogue& catalogue) {
  const gpu::Model* model = catalogue.FindByProduct(info.product);
  return model != nullptr ? model : catalogue.FindByPciId(info.pci_device_id);
}

}  // namespace

bool IsMigUuid(std::string_view text) {
  return text.starts_with(kMigPrefix) && text.size() > kMigPrefix.size() &&
         text.size() <= kMaxUuid && std::ranges::all_of(text, [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '-';
         });
}

std::string MigPartId(const MigPart& part) {
  return fmt::format("{}::{}{}::{}", part.mig_uuid, kCount, part.count, part.number);
}

std::optional<MigPart> ParseMigPartId(std::string_view id) {
  const std::vector<std::string_view> words = Split(id, ':');
  const bool shaped = words.size() == 5 && words[1].empty() && words[3].empty();
  if (!shaped || !IsMigUuid(words[0]) || !words[2].starts_with(kCount)) return std::nullopt;
  const auto count = Number(words[2].substr(kCount.size()), 2, gpu::kMaxParts);
  const auto number = Number(words[4], 0, gpu::kMaxParts - 1);
  if (!count || !number || *number >= *count) return std::nullopt;
  return MigPart{std::string(words[0]), *count, *number};
}

std::string MigOf(const std::string& device_id) {
  const auto part = ParseMigPartId(device_id);
  return part ? part->mig_uuid : device_id;
}

uint32_t DriverIdOf(uint32_t instance_id) { return instance_id & kDriverIds; }

void MigParts::GiveWhole(bool give) {
  backend().GiveWhole(give);
  const std::scoped_lock lock(mutex_);
  gives_ = give;
  if (!give) divided_.clear();
}

Result<std::vector<GpuInfo>> MigParts::ListGpus() {
  NOS_ASSIGN(std::vector<GpuInfo> infos, backend().ListGpus());
  const std::scoped_lock lock(mutex_);
  infos_.clear();
  for (const GpuInfo& info : infos) infos_[info.index] = info;
  return infos;
}

GpuInstance MigParts::ToPart(const GpuInstance& instance, int count, int number) const {
  GpuInstance part;
  part.gpu = instance.gpu;
  part.id = instance.id | static_cast<uint32_t>(number + 1) << kNumberShift;
  part.uuid = MigPartId({instance.uuid, count, number});
  part.profile = gpu::PartName({instance.profile, count});
  part.start = static_cast<uint8_t>(instance.start + number);
  part.size = static_cast<uint8_t>(instance.size / count);
  part.part_of = instance.uuid;
  return part;
}

std::vector<GpuInstance> MigParts::PartsOf(const GpuInstance& instance,
                                           const Divided& divided) const {
  std::vector<GpuInstance> parts;
  parts.reserve(divided.numbers.size());
  for (const int number : divided.numbers) {
    parts.push_back(ToPart(instance, divided.count, number));
  }
  return parts;
}

// True if the instance may be divided into this number of parts.
bool MigParts::MayBe(const GpuInstance& instance, int count) const {
  const gpu::InstancePart part{instance.profile, count};
  return instance.complete && instance.id <= kDriverIds && IsMigUuid(instance.uuid) &&
         std::ranges::find(parts_, part) != parts_.end() && instance.size >= count;
}

Result<std::vector<GpuInstance>> MigParts::ListInstances(int gpu) {
  const std::scoped_lock lock(mutex_);
  NOS_ASSIGN(const std::vector<GpuInstance> driver, backend().ListInstances(gpu));
  // Forgets divided instances that have vanished, e.g. after a reboot.
  const auto info = infos_.find(gpu);
  const bool known = info != infos_.end() && info->second.problem.empty();
  std::erase_if(divided_, [&](const auto& entry) {
    return known && entry.second.gpu == info->second.uuid &&
           std::ranges::find(driver, entry.first, &GpuInstance::uuid) == driver.end();
  });
  std::vector<GpuInstance> instances;
  for (const GpuInstance& instance : driver) {
    const auto divided = instance.complete ? divided_.find(instance.uuid) : divided_.end();
    if (divided == divided_.end()) {
      instances.push_back(instance);
      continue;
    }
    for (GpuInstance& part : PartsOf(instance, divided->second)) {
      instances.push_back(std::move(part));
    }
  }
  return instances;
}

std::vector<std::string> MigParts::Adopt(std::span<const std::string> device_ids) {
  std::vector<std::string> refused = backend().Adopt(device_ids);
  const std::scoped_lock lock(mutex_);
  if (!gives_) return refused;
  std::map<int, Instances> listed;
  for (const std::string& id : device_ids) {
    const auto part = ParseMigPartId(id);
    if (!part) continue;
    const std::string why = AdoptOne(*part, device_ids, listed);
    if (why.empty()) continue;
    refused.push_back(
        fmt::format("a pod holds '{}', {}: its instance counts as held as a whole", id, why));
  }
  return refused;
}

// Null: no readable GPU has it. REQUIRES: mutex_ is held.
const GpuInstance* MigParts::FindForAdoption(const std::string& uuid,
                                             std::map<int, Instances>& listed) {
  for (const auto& [index, info] : infos_) {
    if (!info.mig_enabled || !info.problem.empty()) continue;
    const auto [known, fresh] = listed.try_emplace(index);
    if (fresh) known->second = backend().ListInstances(index).value_or({});
    const auto found = std::ranges::find(known->second, uuid, &GpuInstance::uuid);
    if (found != known->second.end()) return &*found;
  }
  return nullptr;
}

// Returns the reason of a refusal; "" if the part is restored, or its instance cannot be found now.
// REQUIRES: mutex_ is held.
std::string MigParts::AdoptOne(const MigPart& part, std::span<const std::string> all,
                               std::map<int, Instances>& listed) {
  const auto known = divided_.find(part.mig_uuid);
  if (known != divided_.end()) {
    if (known->second.count != part.count) {
      return fmt::format("but the instance is divided into {} parts", known->second.count);
    }
    known->second.numbers.insert(part.number);
    return "";
  }
  const GpuInstance* instance = FindForAdoption(part.mig_uuid, listed);
  if (instance == nullptr) return "";
  if (!MayBe(*instance, part.count)) {
    return fmt::format("but no {} is divided into {} parts here", instance->profile, part.count);
  }
  if (std::ranges::find(all, part.mig_uuid) != all.end()) return "and a pod the whole of it";
  divided_[part.mig_uuid] = {infos_[instance->gpu].uuid, part.count, {part.number}};
  return "";
}

// The start of the instance that contains such a part; empty if no instance can. REQUIRES: mutex_
// is held.
std::optional<uint8_t> MigParts::InstanceStart(int gpu, const gpu::InstancePart& part,
                                               uint8_t start) const {
  const auto info = infos_.find(gpu);
  const gpu::Model* model = info == infos_.end() ? nullptr : ModelOf(info->second, catalogue_);
  const bool may = gives_ && std::ranges::find(parts_, part) != parts_.end();
  if (model == nullptr || !may || !gpu::CanHaveParts(*model, part)) return std::nullopt;
  const auto profile = model->FindProfile(part.profile);
  if (!profile) return std::nullopt;
  for (const uint8_t first : model->profile(*profile).starts) {
    if (start >= first && start < first + part.count) return first;
  }
  return std::nullopt;
}

Result<GpuInstance> MigParts::Create(int gpu, const std::string& profile, uint8_t start) {
  const auto part = gpu::ParsePartName(profile);
  const std::scoped_lock lock(mutex_);
  if (part) return CreatePart(gpu, *part, start);
  Result<GpuInstance> made = backend().Create(gpu, profile, start);
  if (made.ok()) divided_.erase(made->uuid);  // a new instance may reuse a UUID
  return made;
}

// REQUIRES: mutex_ is held.
Result<GpuInstance> MigParts::CreatePart(int gpu, const gpu::InstancePart& part, uint8_t start) {
  const auto first = InstanceStart(gpu, part, start);
  if (!first) {
    return Invalid(fmt::format("GPU {} has no {}@{} now", gpu, gpu::PartName(part), start));
  }
  const int number = start - *first;
  NOS_ASSIGN(const std::vector<GpuInstance> driver, backend().ListInstances(gpu));
  const auto there = std::ranges::find_if(driver, [&](const GpuInstance& instance) {
    return instance.start == *first && instance.profile == part.profile;
  });
  if (there == driver.end()) {
    NOS_ASSIGN(const GpuInstance made, backend().Create(gpu, part.profile, *first));
    if (MayBe(made, part.count)) {
      divided_[made.uuid] = {infos_[gpu].uuid, part.count, {number}};
      return ToPart(made, part.count, number);
    }
    NOS_RETURN_IF_ERROR(backend().Destroy(gpu, made.id));
    return Status(
        Code::kUnimplemented,
        fmt::format("{}@{} of GPU {} cannot be divided into {} parts: it has UUID '{}' and "
                    "{} slots",
                    part.profile, *first, gpu, part.count, made.uuid, made.size));
  }
  const auto divided = there->complete ? divided_.find(there->uuid) : divided_.end();
  if (divided == divided_.end() || divided->second.count != part.count) {
    return Status(Code::kExhausted,
                  fmt::format("GPU {} has {}@{} ({}), which is not divided into {} parts", gpu,
                              there->profile, there->start, there->uuid, part.count));
  }
  if (!divided->second.numbers.insert(number).second) {
    return Status(Code::kExhausted,
                  fmt::format("GPU {} has {}@{} already", gpu, gpu::PartName(part), start));
  }
  return ToPart(*there, part.count, number);
}

Status MigParts::Destroy(int gpu, uint32_t instance_id) {
  const std::scoped_lock lock(mutex_);
  const uint32_t driver_id = DriverIdOf(instance_id);
  const int number = static_cast<int>(instance_id >> kNumberShift) - 1;
  if (number < 0 && divided_.empty()) return backend().Destroy(gpu, instance_id);
  NOS_ASSIGN(const std::vector<GpuInstance> driver, backend().ListInstances(gpu));
  const auto there = std::ranges::find(driver, driver_id, &GpuInstance::id);
  const bool divided = there != driver.end() && there->complete && divided_.contains(there->uuid);
  if (number < 0 && divided) {
    return {Code::kUnavailable,
            fmt::format("{}@{} on GPU {} has parts", there->profile, there->start, gpu)};
  }
  if (number < 0) return backend().Destroy(gpu, instance_id);
  if (!divided) return NotFound(fmt::format("GPU {} has no instance {}", gpu, instance_id));
  return DestroyPart(*there, number);
}

// REQUIRES: mutex_ is held, and the instance is divided.
Status MigParts::DestroyPart(const GpuInstance& instance, int number) {
  Divided& divided = divided_.at(instance.uuid);
  if (!divided.numbers.contains(number)) {
    return NotFound(fmt::format("GPU {} has no {}", instance.gpu,
                                MigPartId({instance.uuid, divided.count, number})));
  }
  if (divided.numbers.size() > 1) {
    divided.numbers.erase(number);
    return Status::Ok();
  }
  NOS_RETURN_IF_ERROR(backend().Destroy(instance.gpu, instance.id));
  divided_.erase(instance.uuid);
  return Status::Ok();
}

Readings MigParts::MeasureInstance(const GpuInstance& instance) {
  if (instance.part_of.empty()) return backend().MeasureInstance(instance);
  return NothingMeasured("the driver does not report the use of one MPS share of a MIG instance");
}

}  // namespace nos::device
