// The file that nos scheduler reads: up to two YAML documents, in any order. A
// KubeSchedulerConfiguration has the same meaning as for kube-scheduler. A SchedulerConfig of nos
// holds the settings that all nos daemons share. kube-scheduler's own file therefore works once its
// profiles have names, and one file, one watch and one reload serve both kinds.
//
//   NOS_ASSIGN(SchedulerFile file, ReadSchedulerFile(path, {.default_name = "nos-scheduler"}));
//   std::cout << PrintSchedulerFile(file);   // ReadSchedulerFile accepts it
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "cmd/daemon/leader.h"
#include "cmd/daemon/process.h"
#include "scheduling/configuration.h"

namespace nos::cmd {

// Name of the first profile if the file gives none and the file is for nos scheduler.
inline constexpr std::string_view kOurScheduler = "nos-scheduler";
// Annotation of the scheduler's Lease: the names of its profiles that partition GPUs, separated by
// commas.
inline constexpr std::string_view kPartitioningProfiles = "nos.nebuly.com/partitioning-profiles";

struct SchedulerFile {
  scheduling::Configuration configuration;
  struct Own {
    DaemonConfig daemon;
    std::string geometries_file;
  } own;
};

// Empty path: defaults. Logs notes on fields without effect. When another scheduler is simulated,
// the content of a nos document is ignored; its presence only means that a profile without a name
// is nos-scheduler. Error: with the file's name, all problems with their keys.
Result<SchedulerFile> ReadSchedulerFile(const std::string& path,
                                        const scheduling::ConfigurationUse& use);
Result<SchedulerFile> ParseSchedulerFile(std::string_view text,
                                         const scheduling::ConfigurationUse& use);
// Names of profiles that partition GPUs themselves. Only a file with a SchedulerConfig has any,
// because only nos scheduler reads such a file. Empty path: none.
Result<std::set<std::string, std::less<>>> PartitioningProfiles(const std::string& path);
// True if the file is for nos scheduler and not for kube-scheduler alone: it has a SchedulerConfig,
// or mentions nos-scheduler, CapacityScheduling, GpuPacking or GpuPartitioning.
Result<bool> SpeaksOfNos(const std::string& path);
std::string PrintSchedulerFile(const SchedulerFile& file);

LeaderConfig LeaderConfigOf(const scheduling::Configuration& configuration);
kube::HttpOptions HttpOptionsOf(const SchedulerFile& file);
// Differences between two files that take effect only after a restart; "" if there are none.
std::string NeedsRestart(const SchedulerFile& before, const SchedulerFile& after);

}  // namespace nos::cmd
