// Sharing mode of a GPU (gpu/product.h) as a table cell and as JSON.
#pragma once

#include <string>
#include <string_view>

#include "codec/json.h"
#include "gpu/product.h"

namespace nos::cmd {

// "free" if the GPU has no instances.
inline std::string WayText(std::string_view way) { return std::string(way.empty() ? "free" : way); }

// The sharing modes that the GPU supports: ["MIG","MPS"].
inline JsonArray WaysJson(const gpu::Model& model, const gpu::Model* other) {
  JsonArray json;
  for (const std::string_view way : gpu::SharingModesOf(model, other))
    json.emplace_back(boost::json::string(way));
  return json;
}

}  // namespace nos::cmd
