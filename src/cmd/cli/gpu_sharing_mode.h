// Sharing mode of a GPU (gpu/product.h) as a table cell and as JSON.
#pragma once

#include <string>
#include <string_view>

#include "codec/json.h"
#include "gpu/product.h"

namespace nos::cmd {

// "free" if the GPU has no instances.
inline std::string SharingModeText(std::string_view mode) {
  return std::string(mode.empty() ? "free" : mode);
}

// The sharing mode in JSON of the telemetry server; null if absent. Older servers and records of
// older agents have only the old name of the key.
inline const Json* FindSharingMode(const Json& gpu) {
  const Json* mode = Find(gpu, "sharing_mode");
  return mode != nullptr ? mode : Find(gpu, "way");
}

inline std::string_view SharingModeIn(const Json& gpu) {
  return FindString(gpu, Find(gpu, "sharing_mode") != nullptr ? "sharing_mode" : "way");
}

// The sharing modes that the GPU supports: ["MIG","MPS"].
inline JsonArray SharingModesJson(const gpu::Model& model, const gpu::Model* other) {
  JsonArray json;
  for (const std::string_view mode : gpu::SharingModesOf(model, other))
    json.emplace_back(boost::json::string(mode));
  return json;
}

}  // namespace nos::cmd
