// Files of the dashboard, embedded in the program (cmake/Embed.cmake).
#pragma once

#include <string_view>
#include <vector>

namespace nos::telemetryserver {

struct EmbeddedFile {
  std::string_view path;  // "index.html", "assets/index-abc.js"
  std::string_view type;
  std::string_view bytes;
};

// Sorted by path. If the dashboard was not built, a page that explains how to build it.
const std::vector<EmbeddedFile>& DashboardFiles();
// Null if the file does not exist.
const EmbeddedFile* FindDashboardFile(std::string_view path);
// The document at /api/v1/openapi.json.
std::string_view OpenApiText();

}  // namespace nos::telemetryserver
