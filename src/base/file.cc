#include "base/file.h"

#include <fmt/core.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace nos {

Result<std::string> ReadFile(const std::string& path, size_t most) {
  const auto fault = [&](const std::string& why) {
    return fmt::format("cannot read '{}': {}", path, why);
  };
  std::error_code unknown;
  if (std::filesystem::is_directory(path, unknown)) {
    return Invalid(fault("it is a folder, not a file"));
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) return NotFound(fault(std::generic_category().message(errno)));
  std::string text;
  char buffer[65536];
  while (file.read(buffer, sizeof buffer) || file.gcount() > 0) {
    text.append(buffer, static_cast<size_t>(file.gcount()));
    if (text.size() > most) return Invalid(fault(fmt::format("it has more than {} bytes", most)));
  }
  if (file.bad()) return Invalid(fault("it is not a readable file"));
  return text;
}

}  // namespace nos
