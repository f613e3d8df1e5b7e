// The file that nos scheduler reads: up to two YAML documents, in any order. A
// KubeSchedulerConfiguration says what kube-scheduler's says; a SchedulerConfig of nos what all
// daemons of nos have besides. So kube-scheduler's own file will do, once its profiles have names,
// and one file, one watch and one reload serve for all.
//
//   NOS_ASSIGN(SchedulerFile file, ReadSchedulerFile(path, {.default_name = "nos-scheduler"}));
//   std::cout << PrintSchedulerFile(file);   // as ReadSchedulerFile takes it
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "cmd/daemon/process.h"
#include "cmd/daemon/leader.h"
#include "scheduling/configuration.h"

namespace nos::cmd {

// The profile of a file that names none, if it is nos scheduler's.
inline constexpr std::string_view kOurScheduler = "nos-scheduler";

struct SchedulerFile {
  scheduling::Configuration configuration;
  struct Own {
    DaemonConfig daemon;
    std::string geometries_file;
  } own;
};

// No path: defaults. Notes on what has no effect are logged. When another scheduler is simulated,
// documents of nos are not looked at, but that there is one: then a profile without a name is
// nos-scheduler. Error: with the file's name, all problems with their keys.
Result<SchedulerFile> ReadSchedulerFile(const std::string& path,
                                        const scheduling::ConfigurationUse& use);
Result<SchedulerFile> ParseSchedulerFile(std::string_view text,
                                         const scheduling::ConfigurationUse& use);
// Those of its profiles, by name, that have GPUs cut themselves: of a file with a SchedulerConfig,
// which nobody else reads. No path: none.
Result<std::set<std::string, std::less<>>> CuttingProfiles(const std::string& path);
// Whether the file is meant for nos scheduler, and not for kube-scheduler alone: it has a
// SchedulerConfig, or names nos-scheduler, CapacityScheduling, GpuPacking or GpuCutting
// somewhere.
Result<bool> SpeaksOfNos(const std::string& path);
std::string PrintSchedulerFile(const SchedulerFile& file);

LeaderConfig LeaderConfigOf(const scheduling::Configuration& configuration);
kube::HttpOptions HttpOptionsOf(const SchedulerFile& file);
// What the two differ in that is read at the start only; "" nothing.
std::string NeedsRestart(const SchedulerFile& before, const SchedulerFile& after);

}  // namespace nos::cmd
