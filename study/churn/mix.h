// What a churn run asks for: how often each profile is requested.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "gpu/catalogue.h"

namespace nos::study {

struct MixEntry {
  gpu::ProfileId profile = 0;
  double weight = 0;  // > 0; shares of the sum
};
using Mix = std::vector<MixEntry>;  // by profile, each once

// A named mix, or the path of a file.
//
// Names: the weights go to the sizes 1g, 2g, 3g, 4g and 7g; a size that the model lacks counts for
// its next larger one, or else its largest.
//   uniform 20/20/20/20/20, skew-small 80/10/5/3/2, skew-big 2/3/5/10/80, bimodal 50/0/0/0/50,
//   inference 60/20/10/8/2
// File: YAML or JSON, a mapping of the model's profiles (any name they go by) to weights:
//   1g.5gb: 60
//   3g.20gb: 40
// Error: kInvalid naming the file and entry; kNotFound when it is neither a name nor a file.
Result<Mix> LoadMix(const std::string& name_or_path, const gpu::Model& model);
// The same from text; `source` names it in errors.
Result<Mix> ParseMix(std::string_view text, const std::string& source, const gpu::Model& model);

}  // namespace nos::study
