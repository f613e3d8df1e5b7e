// Configuration of nos autoscaler, read at its start.
#pragma once

#include <string>

#include "cmd/daemon/leader.h"
#include "cmd/daemon/planning_rules.h"
#include "cmd/daemon/pool_webhook.h"
#include "cmd/daemon/process.h"
#include "controllers/autoscaler.h"

namespace nos::cmd {

inline constexpr std::string_view kAutoscalerKind = "AutoscalerConfig";

struct AutoscalerFile {
  DaemonConfig daemon;
  LeaderConfig leader{.lease_name = "autoscaler.nos.nebuly.com"};
  PlanningFiles files;
  PoolWebhookConfig webhook;
  controllers::AutoscalerConfig controller;
  std::string objective = "pods";
  // Namespace, image and priority classes of placeholders and of pods that signal demand.
  std::string ns, former_ns, image, priority_class, place_class;
  std::string pull_secrets;  // of that image, separated by commas
  // Converted by OptionsOf: the controller uses ints and fractions.
  int64_t utilization_threshold_percent = 50, max_concurrent_drains = 3;
  int64_t max_moves_per_pod = 3, max_moves_per_hour = 20, max_moves_per_namespace = 5;
};

void DescribeAutoscaler(ConfigFields& fields, AutoscalerFile& file);
// Error: kInvalid: inconsistent fields.
Status CheckAutoscaler(const AutoscalerFile& file);
// Options of the controller. REQUIRES: CheckAutoscaler returned OK.
controllers::AutoscalerConfig OptionsOf(const AutoscalerFile& file);

}  // namespace nos::cmd
