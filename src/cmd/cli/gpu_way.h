// In which way a GPU is used (gpu/board.h), as a cell of a table and as JSON.
#pragma once

#include <string>
#include <string_view>

#include "codec/json.h"
#include "gpu/board.h"

namespace nos::cmd {

// "free": nothing lies on it.
inline std::string WayText(std::string_view way) { return std::string(way.empty() ? "free" : way); }

// ["MIG","MPS"]: those that it may be used in.
inline JsonArray WaysJson(const gpu::Model& model, const gpu::Model* other) {
  JsonArray json;
  for (const std::string_view way : gpu::WaysOf(model, other))
    json.emplace_back(boost::json::string(way));
  return json;
}

}  // namespace nos::cmd
