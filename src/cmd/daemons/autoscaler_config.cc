#include "cmd/daemons/autoscaler_config.h"

#include <algorithm>

#include "base/text.h"
#include "planning/names.h"

namespace nos::cmd {
namespace {

using std::chrono::hours, std::chrono::milliseconds, std::chrono::minutes, std::chrono::seconds;

void DescribeGrowth(ConfigFields& f, controllers::AutoscalerConfig& c) {
  f.Seconds(
      "settleSeconds", c.settle, milliseconds(10), hours(1),
      "Time that a pod must be unschedulable before nodes are added. Repartitioning comes first.");
  f.Renamed("planBudgetSeconds", "planTimeoutSeconds");
  f.Seconds("planTimeoutSeconds", c.plan_timeout, milliseconds(10), minutes(10),
            "Time limit of one planning run. When it expires, the best plan so far is used.");
  f.Renamed("readPoolsSeconds", "poolSyncIntervalSeconds");
  f.Seconds(
      "poolSyncIntervalSeconds", c.pool_sync_interval, seconds(1), hours(1),
      "Interval of reading the desired number of nodes from a pool's scaled object or webhook.");
  f.Renamed("leastPatienceSeconds", "minProvisionTimeoutSeconds");
  f.Seconds("minProvisionTimeoutSeconds", c.min_provision_timeout, seconds(1), hours(24),
            "Minimum provisioning timeout. Nodes are late after twice their pool's startSeconds, "
            "but not earlier.");
  const Duration usual = c.backoff;
  f.Renamed("closeSeconds", "backoffSeconds");
  f.Seconds("backoffSeconds", c.backoff, seconds(1), hours(24),
            "Back-off of a pool whose nodes do not appear. It doubles with each failure.");
  c.max_backoff = std::max(c.max_backoff, c.backoff);  // unless the file sets maxBackoffSeconds
  f.Renamed("longestCloseSeconds", "maxBackoffSeconds");
  f.Seconds("maxBackoffSeconds", c.max_backoff, seconds(1), hours(24 * 7),
            "Maximum back-off. At least backoffSeconds.");
  if (c.backoff == usual) c.backoff = std::min(usual, c.max_backoff);
}

void DescribeShrink(ConfigFields& f, AutoscalerFile& file) {
  controllers::AutoscalerConfig& c = file.controller;
  f.Flag("enabled", c.shrink, "Drain and remove nodes that are not needed.");
  f.Seconds("afterSeconds", c.shrink_after, milliseconds(10), hours(24),
            "A node is removed after it has been removable for this long, with no pool growing "
            "meanwhile.");
  f.Renamed("mostUsePercent", "utilizationThresholdPercent");
  f.Number(
      "utilizationThresholdPercent", file.utilization_threshold_percent, 0, 100,
      "A node is kept if its pods use more than this percentage of the scarcest of its CPU, memory "
      "and GPUs.");
  f.Renamed("mostEmptied", "maxConcurrentDrains");
  f.Number("maxConcurrentDrains", file.max_concurrent_drains, 1, 100,
           "Maximum number of nodes drained at the same time.");
  f.Renamed("removalDeadlineSeconds", "removalTimeoutSeconds");
  f.Seconds("removalTimeoutSeconds", c.removal_timeout, seconds(1), hours(24),
            "Time after its pool shrinks when a node that still exists is reported.");
}

void DescribeMoves(ConfigFields& f, AutoscalerFile& file) {
  controllers::AutoscalerConfig& c = file.controller;
  f.Flag("enabled", c.moves, "Move running pods if that frees capacity for a pending pod.");
  f.Seconds("afterSeconds", c.move_after, milliseconds(10), hours(24),
            "Time that a pod must be pending before pods move for it.");
  f.Renamed("mostPerPod", "maxPerPod");
  f.Number("maxPerPod", file.max_moves_per_pod, 1, 20,
           "Maximum number of pods that move for one pending pod.");
  f.Renamed("perHour", "maxPerHour");
  f.Number("maxPerHour", file.max_moves_per_hour, 1, 100'000,
           "Maximum number of moves per hour in the whole cluster.");
  // Default, unless the file sets maxPerNamespacePerHour.
  file.max_moves_per_namespace = std::min(file.max_moves_per_namespace, file.max_moves_per_hour);
  f.Renamed("perNamespaceAndHour", "maxPerNamespacePerHour");
  f.Number("maxPerNamespacePerHour", file.max_moves_per_namespace, 1, 100'000,
           "Maximum number of moves per hour in one namespace. At most maxPerHour.");
}

void DescribeRelocations(ConfigFields& f, controllers::RelocationConfig& c) {
  f.Flag(
      "localStorage", c.rules.local_storage,
      "If true, pods with data on their node (hostPath, emptyDir) may move without an annotation "
      "that allows it. The data is lost.");
  f.Renamed("holdDeadlineSeconds", "holdTimeoutSeconds");
  f.Seconds("holdTimeoutSeconds", c.hold_timeout, seconds(1), hours(24),
            "Time limit of holding all new places of a move. When it expires, the move is "
            "cancelled and no pod is evicted.");
  f.Renamed("drainDeadlineSeconds", "drainTimeoutSeconds");
  f.Seconds(
      "drainTimeoutSeconds", c.drain_timeout, seconds(1), hours(24),
      "Time limit of evictions. Pods that their disruption budgets still protect are not moved.");
  f.Renamed("successorDeadlineSeconds", "successorTimeoutSeconds");
  f.Seconds("successorTimeoutSeconds", c.successor_timeout, seconds(1), hours(1),
            "Time that the new place of an evicted pod is held for its replacement.");
  f.Renamed("evictAgainSeconds", "evictionRetrySeconds");
  f.Seconds("evictionRetrySeconds", c.eviction_retry, milliseconds(10), minutes(10),
            "Pause after a disruption budget rejects an eviction.");
}

}  // namespace

void DescribeAutoscaler(ConfigFields& f, AutoscalerFile& file) {
  controllers::AutoscalerConfig& c = file.controller;
  f.Word("objective", file.objective, {"pods", "compute", "memory"},
         "Objective among pods of equal priority: the served quantity to maximize. The same as "
         "the partitioner's.");
  DescribePlanningFiles(f, file.files);
  DescribeGrowth(f, c);
  f.Group("scaleDown", [&] { DescribeShrink(f, file); });
  f.Group("moves", [&] { DescribeMoves(f, file); });
  f.Group("relocations", [&] { DescribeRelocations(f, c.relocations); });
  f.Group("placeholders", [&] {
    f.Text("namespace", file.ns,
           "Namespace of placeholder pods and of pods that signal demand. Empty: the namespace of "
           "this pod.");
    f.Text("formerNamespace", file.former_ns,
           "Namespace in which an earlier version kept these pods: pods left there are deleted. "
           "Empty: none.");
    f.Flag("hostPorts", c.relocations.rules.host_ports,
           "Move pods with host ports. Their placeholders need a namespace of Pod Security level "
           "privileged.");
    f.Text("image", file.image, "Image of these pods: the image of nos. Required.");
    f.Text(
        "imagePullSecrets", file.pull_secrets,
        "Names of Secrets of that namespace with which the image is pulled, separated by commas.");
    f.Text("priorityClass", file.place_class,
           "PriorityClass of placeholder pods: with preemptionPolicy Never and a value that no pod "
           "preempts. Empty: the class of the moved pod; kube-scheduler may then preempt for it.");
    f.Text(
        "demandPriorityClass", file.priority_class,
        "PriorityClass of pods that signal demand to another autoscaler: below all other pods, but "
        "at least the -10 that cluster-autoscaler still considers. Empty: the cluster's default.");
  });
  f.Flag("provisioningRequests", c.signal.provisioning_requests,
         "Allow pools with signal: ProvisioningRequest; the chart must grant the rights and the "
         "CRD must be installed.");
  f.Group("webhook", [&] { DescribePoolWebhook(f, file.webhook); });
  f.Group("leaderElection", [&] { DescribeLeader(f, file.leader); });
  DescribeDaemon(f, file.daemon);
}

Status CheckAutoscaler(const AutoscalerFile& file) {
  NOS_RETURN_IF_ERROR(CheckLeader(file.leader));
  NOS_RETURN_IF_ERROR(CheckPoolWebhook(file.webhook));
  const controllers::AutoscalerConfig& c = file.controller;
  if (c.max_backoff < c.backoff) {
    return Invalid("maxBackoffSeconds: must be at least backoffSeconds");
  }
  if (file.max_moves_per_namespace > file.max_moves_per_hour) {
    return Invalid("moves.maxPerNamespacePerHour: must be at most moves.maxPerHour");
  }
  return Status::Ok();
}

controllers::AutoscalerConfig OptionsOf(const AutoscalerFile& file) {
  controllers::AutoscalerConfig c = file.controller;
  c.objective = planning::FindObjective(file.objective).value_or(planning::Objective::kPods);
  c.utilization_threshold = static_cast<double>(file.utilization_threshold_percent) / 100;
  c.max_concurrent_drains = static_cast<int>(file.max_concurrent_drains);
  c.max_moves_per_pod = static_cast<int>(file.max_moves_per_pod);
  c.max_moves_per_hour = static_cast<int>(file.max_moves_per_hour);
  c.max_moves_per_namespace = static_cast<int>(file.max_moves_per_namespace);
  const std::string ns = file.ns.empty() ? OwnNamespace() : file.ns;
  const std::vector<std::string> command{"nos", "hold"};
  c.relocations.ns = c.signal.ns = ns;
  c.relocations.former_ns = c.signal.former_ns = file.former_ns;
  c.relocations.image = c.signal.image = file.image;
  c.relocations.command = c.signal.command = command;
  for (const std::string_view name : Split(file.pull_secrets, ',')) {
    if (const std::string_view secret = Trim(name); !secret.empty()) {
      c.relocations.pull_secrets.emplace_back(secret);
    }
  }
  c.signal.pull_secrets = c.relocations.pull_secrets;
  c.relocations.priority_class = file.place_class;
  c.signal.priority_class = file.priority_class;
  return c;
}

}  // namespace nos::cmd
