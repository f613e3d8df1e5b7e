#include "cmd/catalogue_flag.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/log.h"
#include "cmd/command.h"

namespace nos::cmd {

void AddCatalogueFlag(CLI::App& command, std::string& path) {
  command
      .add_option("--catalogue", path,
                  "File with additional or overridden GPU models (docs/catalogue.md)")
      ->option_text("FILE");
}

std::vector<std::string> ModelNames() {
  std::vector<std::string> names;
  for (const auto& model : gpu::Catalogue::Builtin().models()) names.push_back(model->name());
  return names;
}

Result<gpu::Catalogue> ReadCatalogue(const std::string& path) {
  if (path.empty()) return gpu::Catalogue::Load("");
  NOS_ASSIGN(const std::string text, ReadFileOrStdin(path));
  auto catalogue = gpu::Catalogue::Load(text);
  if (!catalogue.ok()) return catalogue.status().Within(path);
  for (const gpu::IgnoredGeometry& geometry : catalogue->ignored()) {
    Log(LogLevel::kWarn, "ignored a geometry that no GPU can have",
        {{"file", path}, {"entry", geometry.text}});
  }
  const std::vector<std::string>& problems = catalogue->problems();
  if (problems.empty()) return catalogue;
  const size_t more = problems.size() - 1;
  return Invalid(fmt::format("{}: {}{}", path, problems[0],
                             more > 0 ? fmt::format(" (and {} more like this)", more) : ""));
}

}  // namespace nos::cmd
