#include "agent/claims/device_metadata.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <set>
#include <system_error>

#include "base/file.h"
#include "base/names.h"
#include "dra/gpu_driver.h"

namespace nos::agent {
namespace {

constexpr const char* kInContainers = "/var/run/kubernetes.io/dra-device-attributes";
constexpr const char* kVersions[] = {"v1beta1", "v1alpha1"};

}  // namespace

std::vector<MetadataFile> MetadataFilesOf(const std::string& folder, const PreparedClaim& claim) {
  const bool from_template = IsDnsLabel(claim.pod_claim);
  if (!from_template && !IsDnsSubdomain(claim.name)) return {};
  const std::string where =
      from_template ? "resourceclaimtemplates/" + claim.pod_claim : "resourceclaims/" + claim.name;
  std::vector<MetadataFile> files;
  for (const ClaimedDevice& device : claim.devices) {
    if (!IsDnsLabel(device.request) ||
        std::ranges::count(files, device.request, &MetadataFile::request) > 0) {
      continue;
    }
    std::string name = claim.uid + "-" + device.request;
    std::string host_path = fmt::format("{}/{}.json", folder, name);
    files.push_back({device.request, std::move(host_path),
                     fmt::format("{}/{}/{}/{}-metadata.json", kInContainers, where, device.request,
                                 dra::kNosDriver),
                     std::move(name)});
  }
  return files;
}

std::string MetadataOf(const PreparedClaim& claim, const std::string& request,
                       const std::string& pool, const DeviceAttributes& attributes) {
  std::string name = request;
  JsonArray devices;
  for (const ClaimedDevice& device : claim.devices) {
    if (device.request != request) continue;
    if (!device.alternative.empty()) name = request + "/" + device.alternative;
    devices.push_back(JsonObject{{"driver", dra::kNosDriver},
                                 {"pool", pool},
                                 {"name", device.device},
                                 {"attributes", attributes(device)}});
  }
  JsonObject object{
      {"kind", "DeviceMetadata"},
      {"metadata",
       JsonObject{
           {"name", claim.name}, {"namespace", claim.ns}, {"uid", claim.uid}, {"generation", 1}}},
      {"requests",
       JsonArray{JsonObject{{"name", std::move(name)}, {"devices", std::move(devices)}}}}};
  if (!claim.pod_claim.empty()) object["podClaimName"] = claim.pod_claim;
  std::string text;
  for (const char* version : kVersions) {
    object["apiVersion"] = fmt::format("metadata.resource.k8s.io/{}", version);
    text += WriteJson(object) + "\n";
  }
  return text;
}

Status WriteMetadata(const std::string& folder, const PreparedClaim& claim, const std::string& pool,
                     const DeviceAttributes& attributes) {
  for (const MetadataFile& file : MetadataFilesOf(folder, claim)) {
    if (mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST) {
      return {Code::kUnavailable,
              fmt::format("cannot create {}: {}", folder, std::generic_category().message(errno))};
    }
    const std::string text = MetadataOf(claim, file.request, pool, attributes);
    NOS_RETURN_IF_ERROR(ReplaceFile(file.host_path, text, 0644));
  }
  return Status::Ok();
}

void RemoveMetadata(const std::string& folder, const PreparedClaim& claim) {
  if (folder.empty()) return;
  for (const MetadataFile& file : MetadataFilesOf(folder, claim)) unlink(file.host_path.c_str());
}

void RemoveOtherMetadata(const std::string& folder, const PreparedClaims& claims) {
  std::set<std::string> kept;
  for (const auto& [uid, claim] : claims) {
    for (const MetadataFile& file : MetadataFilesOf(folder, claim)) kept.insert(file.host_path);
  }
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (!kept.contains(entry.path())) unlink(entry.path().c_str());
  }
}

}  // namespace nos::agent
