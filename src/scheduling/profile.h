// A framework from a KubeSchedulerConfiguration (kubescheduler.config.k8s.io), so that what is
// simulated filters and scores as the cluster's scheduler does.
//
//   Result<Framework> framework = ReadProfile(config, "", notes);
//
// Understood: which plugins are enabled and disabled at multiPoint, filter and score, and the
// weights of scores.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "codec/json.h"
#include "scheduling/framework.h"

namespace nos::scheduling {

// Of the profile with this schedulerName; "": the first one. A configuration without profiles is
// the default one. `notes` gets a sentence for each part that is not simulated. Error: kInvalid:
// not a KubeSchedulerConfiguration, or no such profile.
Result<Framework> ReadProfile(const Json& config, std::string_view scheduler_name,
                              std::vector<std::string>& notes);

}  // namespace nos::scheduling
