// Reads one profile of a KubeSchedulerConfiguration. Internal to scheduling; the public interface
// is configuration.h.
#pragma once

#include <string>
#include <vector>

#include "scheduling/configuration.h"
#include "scheduling/framework/config_value.h"

namespace nos::scheduling {

// An absent value yields the default profile, with an empty name. `notes`: those of the
// configuration.
Profile ReadProfile(const ConfigValue& from, const ConfigurationUse& use,
                    std::vector<std::string>& notes);

void ReadPercentage(const ConfigValue& from, std::vector<std::string>& notes);

}  // namespace nos::scheduling
