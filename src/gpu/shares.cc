#include "gpu/shares.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <string>
#include <utility>

#include "base/text.h"
#include "gpu/catalogue_builder.h"

namespace nos::gpu {
namespace {

constexpr std::string_view kNamePrefix = "MPS-", kNameSuffix = "GB";
constexpr std::string_view kClientsPart = "+CLIENTS-";
constexpr std::string_view kResourcePrefix = "nvidia.com/gpu-", kResourceSuffix = "gb";
constexpr int kComputeSlices = 7;  // as MIG counts compute slices

// The number between prefix and suffix, without leading zeroes. 0 if there is none.
int64_t NumberIn(std::string_view text, std::string_view prefix, std::string_view suffix) {
  if (!text.starts_with(prefix) || !text.ends_with(suffix)) return 0;
  if (text.size() <= prefix.size() + suffix.size()) return 0;
  text = text.substr(prefix.size(), text.size() - prefix.size() - suffix.size());
  if (text.front() < '1' || text.front() > '9') return 0;
  return ParseInt(text).value_or(0);
}

// The compute slices that MIG would assign for as much memory, for objectives that count compute.
int ComputeOf(int share, int gib) { return std::max(1, kComputeSlices * share / gib); }

std::string NameOf(int gib, int clients) {
  std::string name(kNamePrefix);
  name += std::to_string(gib);
  name += kNameSuffix;
  if (clients != kMaxShares) name.append(kClientsPart).append(std::to_string(clients));
  return name;
}

Profile ProfileOf(int share, int gib, int clients) {
  Profile profile;
  profile.name = std::to_string(share) + "gb";
  profile.memory_mib = share * 1024;
  profile.compute = ComputeOf(share, gib);
  profile.slots = share;
  profile.max_count = std::min(gib / share, clients);
  profile.starts.resize(kMaxClients);  // any number may occur on any GPU
  std::iota(profile.starts.begin(), profile.starts.end(), uint8_t{0});
  profile.facts = profile.placements = Confidence::kLive;
  profile.resource_name = std::string(kResourcePrefix) + profile.name;
  return profile;
}

constexpr size_t kUnbounded = SIZE_MAX;

// Null if `most` models exist and this one is not among them.
const Model* FindWithin(int gib, int clients, size_t most) {
  static std::mutex mutex;
  static std::map<std::pair<int, int>, std::unique_ptr<const Model>> models;
  gib = std::clamp(gib, 1, kMaxSharedGib);
  clients = std::clamp(clients, 1, kMaxClients);
  const std::lock_guard lock(mutex);
  const auto known = models.find({gib, clients});
  if (known != models.end()) return known->second.get();
  if (models.size() >= most) return nullptr;
  CountedSpec spec{NameOf(gib, clients), gib, kComputeSlices, clients, {}};
  for (int share = 1; share <= std::min(gib, kMaxShareGib); ++share) {
    spec.profiles.push_back(ProfileOf(share, gib, clients));
  }
  return (models[{gib, clients}] = BuildCounted(std::move(spec))).get();
}

}  // namespace

const Model& SharesOf(int gib, int clients) { return *FindWithin(gib, clients, kUnbounded); }

const Model* FindShares(int gib, int clients) { return FindWithin(gib, clients, kMaxShareModels); }

const Model* SharesOfMemory(int64_t mib, int clients) {
  const int64_t gib = (mib - kShareOverheadMib) / 1024;
  if (gib < 1) return nullptr;
  return &SharesOf(static_cast<int>(std::min<int64_t>(gib, kMaxSharedGib)), clients);
}

const Model* FindShares(std::string_view name) {
  int64_t clients = kMaxShares;
  const size_t plus = name.find(kClientsPart);
  const std::string_view memory = name.substr(0, plus);
  if (plus != std::string_view::npos) {
    clients = NumberIn(name.substr(plus), kClientsPart, "");
    // Accept only the canonical spelling, so that each model has one name.
    if (clients < 1 || clients > kMaxClients || clients == kMaxShares) return nullptr;
  }
  const int64_t gib = NumberIn(memory, kNamePrefix, kNameSuffix);
  if (gib < 1 || gib > kMaxSharedGib) return nullptr;
  return FindShares(static_cast<int>(gib), static_cast<int>(clients));
}

bool IsShareResource(std::string_view resource) {
  return NumberIn(resource, kResourcePrefix, kResourceSuffix) > 0;
}

}  // namespace nos::gpu
