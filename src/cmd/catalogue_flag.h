// --catalogue FILE: additional or overridden GPU models, for every command that reads GPUs.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "gpu/catalogue.h"

namespace CLI {
class App;
}

namespace nos::cmd {

// `path` must outlive parsing. It stays empty if the flag is not given.
void AddCatalogueFlag(CLI::App& command, std::string& path);

// The built-in catalogue, extended and overridden by the file if `path` is not empty. Allowed
// geometries that no GPU can have are ignored and logged. Error: the file cannot be read, is not a
// catalogue, or contains an invalid entry. One invalid entry rejects the whole file, because a
// partly applied catalogue would go unnoticed.
Result<gpu::Catalogue> ReadCatalogue(const std::string& path);

// Names of the built-in models, for shell completion.
std::vector<std::string> ModelNames();

}  // namespace nos::cmd
