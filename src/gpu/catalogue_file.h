// The catalogue's file format (docs/catalogue.md), read into a builder.
#pragma once

#include <string_view>

#include "base/status.h"
#include "gpu/catalogue_builder.h"

namespace nos::gpu {

// catalogue.yaml as built into the program.
extern const std::string_view kBuiltinCatalogueYaml;

// Applies a file's entries: models, then removals, then the allowed geometries. Wrong entries go to
// builder.AddProblem. Error: kInvalid when the text is not YAML, too large, or no catalogue file.
Status ReadCatalogueFile(std::string_view yaml, CatalogueBuilder& builder);

}  // namespace nos::gpu
