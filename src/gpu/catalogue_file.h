// Reads the catalogue's file format (docs/catalogue.md) into a builder.
#pragma once

#include <string_view>

#include "base/status.h"
#include "gpu/catalogue_builder.h"

namespace nos::gpu {

// The text of catalogue.yaml, embedded at build time.
extern const std::string_view kBuiltinCatalogueYaml;

// Applies the file's entries: models, then removals, then allowed geometries. Reports invalid
// entries to builder.AddProblem, and allowed geometries that no GPU can have to builder.AddIgnored.
// Error: kInvalid if the text is not YAML, too large, or not a
// catalogue file.
Status ReadCatalogueFile(std::string_view yaml, CatalogueBuilder& builder);

}  // namespace nos::gpu
