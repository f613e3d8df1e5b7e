// Files that describe to containers the devices of their claims: one for each request of a claim,
// mounted read-only where the container expects it:
//
//   /var/run/kubernetes.io/dra-device-attributes/resourceclaims/CLAIM/REQUEST/DRIVER-metadata.json
//   .../resourceclaimtemplates/NAME/REQUEST/DRIVER-metadata.json   NAME: spec.resourceClaims[].name
//
// A file is a stream of the same object in all versions of the API, the newest first. Source: KEP
// 5304; k8s.io/dynamic-resource-allocation 0.37, api/metadata.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "agent/claims/checkpoint.h"
#include "base/status.h"
#include "codec/json.h"

namespace nos::agent {

struct MetadataFile {
  std::string request;  // of the claim, without the alternative
  std::string host_path, container_path;
  std::string cdi_name;  // of the CDI device that mounts it
};

// One file for each request that has a device on this node. There are none if a name of the claim
// cannot be part of a path.
std::vector<MetadataFile> MetadataFilesOf(const std::string& folder, const PreparedClaim& claim);

// The attributes of a device, as in ResourceSlices: {"profile": {"string": "1g.10gb"}}.
using DeviceAttributes = std::function<JsonObject(const ClaimedDevice& device)>;

// The content for one request; `pool` of all devices.
std::string MetadataOf(const PreparedClaim& claim, const std::string& request,
                       const std::string& pool, const DeviceAttributes& attributes);

// Writes the files of the claim; the folder is created in an existing one. Error: kUnavailable.
Status WriteMetadata(const std::string& folder, const PreparedClaim& claim, const std::string& pool,
                     const DeviceAttributes& attributes);
// No effect without a folder.
void RemoveMetadata(const std::string& folder, const PreparedClaim& claim);
// Removes all files but those of these claims.
void RemoveOtherMetadata(const std::string& folder, const PreparedClaims& claims);

}  // namespace nos::agent
