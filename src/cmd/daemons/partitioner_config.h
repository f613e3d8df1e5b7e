// Configuration of nos partitioner, read at its start.
#pragma once

#include <string>
#include <string_view>

#include "cmd/daemon/leader.h"
#include "cmd/daemon/planning_rules.h"
#include "cmd/daemon/process.h"
#include "controllers/partitioner.h"

namespace nos::cmd {

inline constexpr std::string_view kPartitionerKind = "GpuPartitionerConfig";

struct PartitionerFile {
  DaemonConfig daemon;
  LeaderConfig leader{.lease_name = "gpu-partitioner.nebuly.com"};
  PlanningFiles files;
  std::string objective = "pods";
  controllers::PartitionerConfig partitioner;
};

void DescribePartitioner(ConfigFields& fields, PartitionerFile& file);

}  // namespace nos::cmd
