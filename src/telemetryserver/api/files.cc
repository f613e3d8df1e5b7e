#include "telemetryserver/api/files.h"

#include <algorithm>

namespace nos::telemetryserver {

const EmbeddedFile* FindDashboardFile(std::string_view path) {
  const auto found = std::ranges::find(DashboardFiles(), path, &EmbeddedFile::path);
  return found == DashboardFiles().end() ? nullptr : &*found;
}

}  // namespace nos::telemetryserver
