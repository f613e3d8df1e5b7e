#include "agent/claims/checkpoint.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <utility>

#include "base/file.h"
#include "codec/json.h"

namespace nos::agent {
namespace {

constexpr size_t kMaxBytes = size_t{16} << 20;  // thousands of claims
constexpr int64_t kVersion = 1;

std::string TextAt(const Json& value, std::string_view key) {
  return std::string(FindString(value, key));
}

bool TrueAt(const Json& value, std::string_view key) {
  const Json* found = Find(value, key);
  return found != nullptr && found->is_bool() && found->get_bool();
}

Json DeviceJson(const ClaimedDevice& device) {
  JsonObject json{{"request", device.request},
                  {"device", device.device},
                  {"gpu", device.gpu_uuid},
                  {"instanceUuid", device.instance_uuid}};
  if (device.admin) json["admin"] = true;
  if (!device.alternative.empty()) json["alternative"] = device.alternative;
  if (device.instance) json["instance"] = *device.instance;
  if (!device.share_id.empty()) json["shareId"] = device.share_id;
  if (device.memory_mib > 0) json["memoryMib"] = device.memory_mib;
  return json;
}

ClaimedDevice ReadDevice(const Json& json) {
  ClaimedDevice device{TextAt(json, "request"), TextAt(json, "device"), TrueAt(json, "admin"),
                       TextAt(json, "gpu"), TextAt(json, "instanceUuid")};
  device.alternative = TextAt(json, "alternative");
  device.share_id = TextAt(json, "shareId");
  const Json* instance = Find(json, "instance");
  const Json* memory = Find(json, "memoryMib");
  boost::system::error_code error;
  if (memory != nullptr && memory->is_number()) {
    const auto mib = memory->to_number<int64_t>(error);
    if (!error) device.memory_mib = mib;
  }
  if (instance != nullptr && instance->is_number()) {
    const auto id = instance->to_number<uint32_t>(error);
    if (!error) device.instance = id;
  }
  return device;
}

}  // namespace

Result<PreparedClaims> ReadCheckpoint(const std::string& path) {
  struct stat file{};
  if (stat(path.c_str(), &file) != 0 && errno == ENOENT) return PreparedClaims();
  NOS_ASSIGN(const std::string text, ReadFile(path, kMaxBytes));
  const auto damaged = [&](std::string_view why) {
    return Invalid(fmt::format("{} is not a list of prepared claims: {}", path, why));
  };
  const auto json = ParseJson(text);
  if (!json.ok()) return damaged(json.status().message());
  const Json* version = Find(*json, "version");
  if (version == nullptr || *version != Json(kVersion)) return damaged("its version is unknown");
  const Json* list = Find(*json, "claims");
  if (list == nullptr || !list->is_array()) return damaged("it has no claims");
  PreparedClaims claims;
  for (const Json& item : list->get_array()) {
    PreparedClaim claim{TextAt(item, "namespace"),
                        TextAt(item, "name"),
                        TextAt(item, "uid"),
                        TrueAt(item, "ready"),
                        {},
                        TextAt(item, "podClaim")};
    const Json* devices = Find(item, "devices");
    if (claim.uid.empty() || devices == nullptr || !devices->is_array()) {
      return damaged("a claim has no uid or no devices");
    }
    for (const Json& device : devices->get_array()) claim.devices.push_back(ReadDevice(device));
    claims[claim.uid] = std::move(claim);
  }
  return claims;
}

Status WriteCheckpoint(const std::string& path, const PreparedClaims& claims) {
  JsonArray list;
  for (const auto& [uid, claim] : claims) {
    JsonArray devices;
    for (const ClaimedDevice& device : claim.devices) devices.push_back(DeviceJson(device));
    JsonObject json{{"namespace", claim.ns},
                    {"name", claim.name},
                    {"uid", uid},
                    {"ready", claim.ready},
                    {"devices", std::move(devices)}};
    if (!claim.pod_claim.empty()) json["podClaim"] = claim.pod_claim;
    list.push_back(std::move(json));
  }
  return ReplaceFile(path,
                     WriteJson(JsonObject{{"version", kVersion}, {"claims", std::move(list)}}));
}

}  // namespace nos::agent
