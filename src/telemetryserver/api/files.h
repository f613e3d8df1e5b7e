// The dashboard's files, built into the program (cmake/Embed.cmake).
#pragma once

#include <string_view>
#include <vector>

namespace nos::telemetryserver {

struct EmbeddedFile {
  std::string_view path;  // "index.html", "assets/index-abc.js"
  std::string_view type;
  std::string_view bytes;
};

// Sorted by path. Where the dashboard was not built there is a page that says how to.
const std::vector<EmbeddedFile>& DashboardFiles();
// Null: there is none.
const EmbeddedFile* FindDashboardFile(std::string_view path);
// The document at /api/v1/openapi.json.
std::string_view OpenApiText();

}  // namespace nos::telemetryserver
