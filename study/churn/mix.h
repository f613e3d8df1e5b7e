// The demand of a churn run: how often each profile is requested.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "gpu/catalogue.h"

namespace nos::study {

struct MixEntry {
  gpu::ProfileId profile = 0;
  double weight = 0;  // > 0; relative to the sum of weights
};
using Mix = std::vector<MixEntry>;  // sorted by profile, without duplicates

// Loads a named mix, or a file.
//
// Names: the weights apply to the sizes 1g, 2g, 3g, 4g and 7g. If the model lacks a size, its next
// larger size is used, or else its largest.
//   uniform 20/20/20/20/20, skew-small 80/10/5/3/2, skew-big 2/3/5/10/80, bimodal 50/0/0/0/50,
//   inference 60/20/10/8/2
// File: YAML or JSON, a mapping of the model's profiles (any of their names) to weights:
//   1g.5gb: 60
//   3g.20gb: 40
// Error: kInvalid naming the file and entry; kNotFound if it is neither a name nor a file.
Result<Mix> LoadMix(const std::string& name_or_path, const gpu::Model& model);
// Parses the text of a file; `source` is its name in errors.
Result<Mix> ParseMix(std::string_view text, const std::string& source, const gpu::Model& model);

}  // namespace nos::study
