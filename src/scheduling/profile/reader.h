// One profile of a KubeSchedulerConfiguration. Internal to this room: configuration.h is what
// others use.
#pragma once

#include <string>
#include <vector>

#include "scheduling/framework/config_value.h"
#include "scheduling/configuration.h"

namespace nos::scheduling {

// An absent value is the default profile; its name may be empty. `notes`: of the
// configuration.
Profile ReadProfile(const ConfigValue& from, const ConfigurationUse& use,
                    std::vector<std::string>& notes);

void ReadPercentage(const ConfigValue& from, std::vector<std::string>& notes);

}  // namespace nos::scheduling
