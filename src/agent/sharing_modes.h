// All sharing modes of an agent.
//
//   SharingModes modes = AllSharingModes();           // a daemon: defaults, then its configuration
//   DescribeSharing(fields, modes, plugins);
//   NOS_RETURN_IF_ERROR(UsePlugin(modes, plugins.Choose(modes)));
//
//   extras.modes = AllSharingModes({.mps = true, .whole = true});  // a test or simulation
#pragma once

#include <memory>
#include <vector>

#include "agent/sharing_mode.h"
#include "base/back_off.h"
#include "device/mps_control.h"

namespace nos::agent {

// The modes that one agent serves. Its device plugin uses them from other threads.
using SharingModes = std::vector<std::shared_ptr<SharingModeStrategy>>;

// Requirements of pods with shares (sharing/mps/requirements.h).
struct MpsPodRequirements {
  bool host_ipc = false;
  bool one_user = false;  // for all pods of a GPU, or of a shared MIG instance
};

struct SharingOptions {
  bool mps = false;  // GPUs may be shared by MPS
  // Serve shared GPUs. Null: another component does.
  device::MpsControl* daemons = nullptr;
  MpsPodRequirements mps_requirements{};
  // GPUs may be given as a whole, and in this number of time slices (0: none), on hybrid nodes.
  bool whole = false;
  int time_slices = 0;
  bool whole_on_mig_nodes = false;       // as a whole on nodes labelled "mig" too
  ResetRule resets = ResetRule::kNever;  // for GPUs of hybrid nodes
  // How long a GPU that could not be reset keeps its mode: after the first failure, and at most.
  BackOff reset_pauses{std::chrono::minutes(1), std::chrono::hours(1)};
  // Parts into which MIG instances of hybrid nodes may be divided if GPUs are shared by MPS.
  std::vector<gpu::InstancePart> parts{};
};

// Bottom-up: a mode decorates the backend of those before it.
SharingModes AllSharingModes(const SharingOptions& options = {});

void DescribeSharing(ConfigFields& fields, const SharingModes& modes, DevicePlugins& plugins);
Status UsePlugin(const SharingModes& modes, const PluginTraits& plugin);
// The settings of a node with this label: those that do not change.
SharingSettings SettingsOf(const SharingModes& modes, RequestedMode requested);
// The mode that the node's label requests.
RequestedMode RequestedModeOf(const SharingModes& modes, const cluster::Node& node);
// The backends of all modes over `driver`; the last one is that of the agent.
std::vector<std::unique_ptr<device::Backend>> StackBackends(const SharingModes& modes,
                                                            device::Backend& driver,
                                                            const ModeContext& context);
// The daemons by which ResourceClaims may share devices; null: there are none.
ShareDaemons* DaemonsOf(const SharingModes& modes);

}  // namespace nos::agent
