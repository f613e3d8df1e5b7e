#include "agent/nebuly_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "base/text.h"
#include "codec/json.h"
#include "codec/yaml.h"
#include "gpu/shares.h"

namespace nos::agent {
namespace {

constexpr size_t kMaxBytes = 256 << 10;
constexpr std::string_view kVendor = "nvidia.com/";
constexpr size_t kMaxOfNode = 28;  // bytes kept of a long node name
constexpr size_t kHashDigits = 16;
constexpr size_t kMaxLabel = 63;
constexpr size_t kSecondsDigits = 10;  // digits of Unix seconds since 2001

// FNV-1a, 64 bit.
std::string HashOf(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char byte : text) {
    hash ^= static_cast<unsigned char>(byte);
    hash *= 0x100000001b3ULL;
  }
  return fmt::format("{:016x}", hash);
}

// Prefix of the node's keys. Node names contain no '_'.
std::string PrefixOf(std::string_view node) {
  if (node.size() + 1 + kHashDigits <= kMaxLabel) return fmt::format("{}_", node);
  return fmt::format("{}_{}_", node.substr(0, kMaxOfNode), HashOf(node));
}

std::string_view WithoutVendor(std::string_view resource) {
  if (resource.starts_with(kVendor)) resource.remove_prefix(kVendor.size());
  return resource;
}

std::optional<int64_t> Integer(const Json& entry, std::string_view key, int64_t most) {
  const Json* value = Find(entry, key);
  if (value == nullptr || !value->is_int64()) return std::nullopt;
  const int64_t number = value->get_int64();
  return number >= 1 && number <= most ? std::optional(number) : std::nullopt;
}

// UUID of a device entry: a UUID, or the GPU's index as a number or as digits. "": neither.
std::string UuidOf(const Json& device, const std::map<int64_t, std::string>& gpus) {
  std::optional<int64_t> index;
  if (device.is_int64()) index = device.get_int64();
  if (device.is_string()) {
    const std::string_view text = View(device.get_string());
    const bool known = std::ranges::any_of(gpus, [&](const auto& g) { return g.second == text; });
    if (known) return std::string(text);
    index = ParseInt(text);
  }
  const auto gpu = index ? gpus.find(*index) : gpus.end();
  return gpu == gpus.end() ? "" : gpu->second;
}

Status ReadEntry(const Json& entry, const std::map<int64_t, std::string>& gpus,
                 NebulyShares& shares) {
  const auto gib = Integer(entry, "memoryGB", gpu::kMaxShareGib);
  const auto replicas = Integer(entry, "replicas", gpu::kMaxClients);
  const Json* devices = Find(entry, "devices");
  if (!gib || !replicas || devices == nullptr || !devices->is_array()) {
    return Invalid("memoryGB, replicas or devices are missing, or not such as of shares");
  }
  const std::string_view rename = WithoutVendor(FindString(entry, "rename"));
  if (WithoutVendor(FindString(entry, "name")) != "gpu" ||
      rename != fmt::format("gpu-{}gb", *gib)) {
    return Invalid(fmt::format("a share of {} GiB is called '{}'", *gib, Shortened(rename, 60)));
  }
  for (const Json& device : devices->get_array()) {
    const std::string uuid = UuidOf(device, gpus);
    if (uuid.empty()) return Invalid("a device is none of the node's GPUs");
    int& count = shares[{uuid, static_cast<int>(*gib)}];
    count = std::max(count, static_cast<int>(*replicas));  // equal numbers name the same share
  }
  return Status::Ok();
}

const JsonArray* List(const Json* value) {
  return value != nullptr && value->is_array() ? &value->get_array() : nullptr;
}

}  // namespace

std::string WriteNebulyConfig(const NebulyShares& shares) {
  std::string text = "version: v1\nflags:\n  migStrategy: none\n";
  // The plugin rejects an empty list.
  if (shares.empty()) return text;
  std::map<std::pair<int, int>, std::vector<std::string>> entries;  // (GiB, count) -> GPUs
  for (const auto& [share, count] : shares) entries[{share.second, count}].push_back(share.first);
  text += "sharing:\n  mps:\n    failRequestsGreaterThanOne: true\n    resources:\n";
  for (const auto& [entry, gpus] : entries) {
    const auto& [gib, count] = entry;
    text += fmt::format(
        "    - name: nvidia.com/gpu\n      rename: gpu-{}gb\n      memoryGB: {}\n"
        "      replicas: {}\n      devices:\n",
        gib, gib, count);
    for (const std::string& uuid : gpus) text += fmt::format("      - \"{}\"\n", uuid);
  }
  return text;
}

Result<NebulyShares> ReadNebulyConfig(std::string_view text,
                                      const std::map<int64_t, std::string>& gpus) {
  if (text.size() > kMaxBytes) return Invalid("it is longer than any for the GPUs of a node");
  NOS_ASSIGN(const std::vector<Json> documents, ParseYaml(text));
  if (documents.size() != 1 || !documents.front().is_object()) {
    return Invalid("it is not one mapping");
  }
  const Json& config = documents.front();
  if (const Json* version = Find(config, "version");
      version != nullptr && (!version->is_string() || FindString(config, "version") != "v1")) {
    return Invalid("its version is not v1");
  }
  const JsonArray* slices = List(Find(config, "sharing", "timeSlicing", "resources"));
  if (slices != nullptr && !slices->empty()) {
    return Invalid("it has time slices, beside which the plugin makes no shares");
  }
  NebulyShares shares;
  const Json* mps = Find(config, "sharing", "mps");
  if (mps == nullptr) return shares;
  const JsonArray* resources = List(Find(*mps, "resources"));
  if (resources == nullptr || resources->empty()) {
    return Invalid("sharing.mps.resources is missing, which the plugin does not take");
  }
  for (const Json& entry : *resources) {
    NOS_RETURN_IF_ERROR(ReadEntry(entry, gpus, shares).Within("sharing.mps.resources"));
  }
  return shares;
}

std::string NebulyKey(std::string_view node, std::string_view text, int variant) {
  return PrefixOf(node) + HashOf(fmt::format("{}\n{}\n{}", node, variant, text));
}

bool IsNebulyKeyOf(std::string_view node, std::string_view key) {
  const auto all_of = [](std::string_view part, std::string_view digits) {
    return !part.empty() && part.find_first_not_of(digits) == std::string_view::npos;
  };
  if (const std::string ours = PrefixOf(node); key.starts_with(ours)) {
    key.remove_prefix(ours.size());
    return key.size() == kHashDigits && all_of(key, "0123456789abcdef");
  }
  return key.size() > node.size() + kSecondsDigits && key.starts_with(node) &&
         key[node.size()] == '-' && all_of(key.substr(node.size() + 1), "0123456789");
}

}  // namespace nos::agent
