// Computes the most that a claim may count for, before its devices are known.
#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "dra/allocation/prepared.h"
#include "dra/device_index.h"
#include "dra/gpu_driver.h"
#include "dra/pools/node_view.h"

namespace nos::dra {
namespace {

constexpr int64_t kMaxGb = 1'000'000;
constexpr size_t kMaxClaims = 4096;  // remembered; any user may write claims

// Whole GPUs are the largest.
int64_t SizeOf(std::string_view resource) {
  constexpr std::string_view kMig = "nvidia.com/mig-";
  if (!resource.starts_with(kMig)) return resource.empty() ? 0 : INT64_MAX;
  const size_t dot = resource.find('.', kMig.size());
  int64_t size = 0;
  for (size_t i = dot + 1; i < resource.size() && resource[i] >= '0' && resource[i] <= '9'; ++i) {
    size = std::min<int64_t>(size * 10 + (resource[i] - '0'), INT64_MAX / 100);
  }
  return size;
}

// Any user may write expressions. Of their cost, some 50 ms.
constexpr uint64_t kMaxCost = 3'000'000;

// More than any quota allows: the most is not known yet.
const DeviceCounts& Unknown() {
  static const DeviceCounts unknown{{std::string(kGpuMemory), kMaxGb}};
  return unknown;
}

// False if the attributes, by which selectors choose, contradict the name: a node may publish any
// device.
bool FitsItsName(const Device& device, std::string_view driver, std::string_view resource) {
  constexpr std::string_view kMig = "nvidia.com/mig-";
  std::string_view type;
  std::string profile;
  for (const auto& [name, value] : *device.attributes) {
    if (value.type != Attribute::Type::kString || value.list) continue;
    const std::string_view plain = PlainAttribute(name.str(), driver);
    if (plain == "type") type = value.text.str();
    if (plain == "profile") profile = value.text.str();
  }
  std::ranges::replace(profile, '+', '.');  // "1g.10gb+me" is nvidia.com/mig-1g.10gb.me
  if (!resource.starts_with(kMig)) return type != "mig" && profile.empty();
  return type != "gpu" && (profile.empty() || profile == resource.substr(kMig.size()));
}

// Remembers the resources of devices by their names, because most nodes have the same names.
class Resources {
 public:
  struct Known {
    std::string resource;
    int64_t size = 0;
  };
  const Known& Of(const PoolDevice& device) {
    const std::string& driver = device.slice->driver.str();
    auto& of_driver = known_[device.slice->driver];
    const auto [found, fresh] = of_driver.try_emplace(device.device->name);
    if (!fresh) return found->second;
    std::string resource = ResourceOf(driver, device.device->name.str());
    const int64_t size = SizeOf(resource);
    return found->second = {std::move(resource), size};
  }

 private:
  std::unordered_map<Name, std::unordered_map<Name, Known>> known_;
};

// The largest device that a request may get, and how many devices of one node "all" may mean.
struct Largest {
  int64_t size = 0;
  std::string resource;
  int64_t all = 0;
  bool exclusive = false;  // one of them is given to one claim only, whatever capacity it asks for
};

void Raise(DeviceCounts& to, const DeviceCounts& from) {
  for (const auto& [resource, count] : from) to[resource] = std::max(to[resource], count);
}

void Sum(DeviceCounts& to, const DeviceCounts& from) {
  for (const auto& [resource, count] : from) to[resource] += count;
}

// The memory that the request asks for, of a device that is shared.
std::optional<int64_t> MemoryOfShare(const PreparedRequest& request) {
  static const Name kMemory("memory");
  if (!request.spec->capacity) return std::nullopt;
  const auto& capacity = *request.spec->capacity;
  const auto memory = std::ranges::find(capacity, kMemory, &Amounts::value_type::first);
  return memory == capacity.end() ? std::nullopt : std::optional(GbOf(memory->second));
}

DeviceCounts CountsFor(const PreparedRequest& request, const Largest& largest) {
  DeviceCounts counts;
  if (request.admin || request.device_class == nullptr) return counts;
  const int64_t count = request.all ? largest.all : request.count;
  if (count == 0) return counts;
  counts[ResourceOfClass(request.device_class->name)] = count;
  if (largest.resource.empty()) return counts;
  const auto gb = largest.exclusive ? std::nullopt : MemoryOfShare(request);
  if (gb) {
    counts[kGpuMemory] += std::min(*gb, kMaxGb) * count;
  } else {
    counts[largest.resource] += count;
  }
  return counts;
}

}  // namespace

const DeviceCounts& DeviceIndex::MostOf(const ResourceClaim& claim, const FindClass& find_class) {
  if (most_.size() >= kMaxClaims) most_.clear();
  const auto [found, fresh] = most_.try_emplace(claim.spec);
  if (!fresh) return found->second;
  const PreparedClaims prepared({std::make_shared<const ResourceClaim>(claim)}, find_class,
                                inventory_.features());
  if (prepared.fault() || base_ == nullptr) return found->second;
  Resources resources;
  const uint64_t before = expressions_->cost();
  bool unknown = false;
  const auto largest_for = [&](const PreparedRequest& request) {
    Largest largest;
    for (size_t i = 0; i < base_->size(); ++i) {
      const NodeView& view = inventory_.View(*base_->node(i).node);
      int64_t matches = 0;
      for (const ViewDevice& at : view.devices) {
        const Generation& generation = *view.pools[at.pool].generation;
        unknown = unknown || expressions_->cost() - before > kMaxCost;
        if (unknown) return largest;
        if (generation.Matches(request.selectors_key, request.selectors, at.index, *expressions_) !=
            Generation::Answer::kYes) {
          continue;
        }
        ++matches;
        const PoolDevice& of_pool = generation.devices()[at.index];
        largest.exclusive = largest.exclusive || !of_pool.device->allow_multiple ||
                            !inventory_.features().consumable_capacity;
        const Resources::Known& device = resources.Of(of_pool);
        if (device.size <= largest.size) continue;
        const std::string_view driver = of_pool.slice->driver.str();
        if (!FitsItsName(*of_pool.device, driver, device.resource)) continue;
        largest.size = device.size;
        largest.resource = device.resource;
      }
      largest.all = std::max(largest.all, matches);
    }
    return largest;
  };
  for (const auto& alternatives : prepared.claims().front().requests) {
    DeviceCounts most;
    for (const PreparedRequest& request : alternatives) {
      Raise(most, CountsFor(request, largest_for(request)));
    }
    Sum(found->second, most);
  }
  if (unknown) {  // answers are remembered, so a later call gets further
    most_.erase(found);
    return Unknown();
  }
  return found->second;
}

}  // namespace nos::dra
