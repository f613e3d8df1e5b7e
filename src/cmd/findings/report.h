// Findings as text for a terminal, as JSON, and as an exit code.
#pragma once

#include <string>
#include <vector>

#include "cmd/findings/verdict.h"
#include "codec/json.h"

namespace nos::cmd {

// Grouped by topic; lines are at most `width` columns wide. Control characters are replaced, long
// names are truncated, and only the first names of a long list are shown.
std::string FindingsText(const std::vector<Finding>& findings, size_t width);
// All codes and verdicts; of each finding the number of its objects, and the first hundred.
Json FindingsJson(const std::vector<Finding>& findings);
// 1 if a finding is kFailed, else 0.
int FindingsExitCode(const std::vector<Finding>& findings);

}  // namespace nos::cmd
