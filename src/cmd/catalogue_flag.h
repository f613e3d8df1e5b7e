// --catalogue FILE: further or changed GPU models, for every command that looks at GPUs.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "gpu/catalogue.h"

namespace CLI {
class App;
}

namespace nos::cmd {

// `path` must outlive the parsing; empty: no file.
void AddCatalogueFlag(CLI::App& command, std::string& path);

// The built-in catalogue, changed by the file if there is one. Error: the file cannot be read, is
// no catalogue, or has an entry that is wrong: who gave the file wants all of it.
Result<gpu::Catalogue> ReadCatalogue(const std::string& path);

// The built-in models, for shell completion.
std::vector<std::string> ModelNames();

}  // namespace nos::cmd
