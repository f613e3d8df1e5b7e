// The sharing modes of an agent. Each is defined in a folder of its own.
#pragma once

#include <memory>

#include "agent/sharing_modes.h"

namespace nos::agent {

class MpsService;

std::shared_ptr<SharingModeStrategy> MakePartSharing(std::shared_ptr<MpsService> mps,
                                                     const SharingOptions& options);
std::shared_ptr<SharingModeStrategy> MakeMpsSharing(std::shared_ptr<MpsService> mps,
                                                    const SharingOptions& options);
std::shared_ptr<SharingModeStrategy> MakeMigModes(const SharingOptions& options);
std::shared_ptr<SharingModeStrategy> MakeHybridSharing(const SharingOptions& options);

}  // namespace nos::agent
