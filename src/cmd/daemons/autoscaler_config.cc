#include "cmd/daemons/autoscaler_config.h"

#include <algorithm>

#include "planning/names.h"

namespace nos::cmd {
namespace {

using std::chrono::hours, std::chrono::milliseconds, std::chrono::minutes, std::chrono::seconds;

void DescribeGrowth(ConfigFields& f, controllers::AutoscalerConfig& c) {
  f.Seconds(
      "settleSeconds", c.settle, milliseconds(10), hours(1),
      "Time that a pod must be unschedulable before nodes are added. Repartitioning comes first.");
  f.Renamed("planBudgetSeconds", "planTimeoutSeconds");
  f.Seconds("planTimeoutSeconds", c.plan_budget, milliseconds(10), minutes(10),
            "Time limit of one planning run. When it expires, the best plan so far is used.");
  f.Renamed("readPoolsSeconds", "poolSyncIntervalSeconds");
  f.Seconds(
      "poolSyncIntervalSeconds", c.read_again, seconds(1), hours(1),
      "Interval of reading the desired number of nodes from a pool's scaled object or webhook.");
  f.Renamed("leastPatienceSeconds", "minProvisionTimeoutSeconds");
  f.Seconds("minProvisionTimeoutSeconds", c.least_patience, seconds(1), hours(24),
            "Minimum provisioning timeout. Nodes are late after twice their pool's startSeconds, "
            "but not earlier.");
  const Duration usual = c.close_for;
  f.Renamed("closeSeconds", "backoffSeconds");
  f.Seconds("backoffSeconds", c.close_for, seconds(1), hours(24),
            "Back-off of a pool whose nodes do not appear. It doubles with each failure.");
  c.longest_close =
      std::max(c.longest_close, c.close_for);  // unless the file sets maxBackoffSeconds
  f.Renamed("longestCloseSeconds", "maxBackoffSeconds");
  f.Seconds("maxBackoffSeconds", c.longest_close, seconds(1), hours(24 * 7),
            "Maximum back-off. At least backoffSeconds.");
  if (c.close_for == usual) c.close_for = std::min(usual, c.longest_close);
}

void DescribeShrink(ConfigFields& f, AutoscalerFile& file) {
  controllers::AutoscalerConfig& c = file.controller;
  f.Flag("enabled", c.shrink, "Drain and remove nodes that are not needed.");
  f.Seconds("afterSeconds", c.shrink_after, milliseconds(10), hours(24),
            "A node is removed after it has been removable for this long, with no pool growing "
            "meanwhile.");
  f.Renamed("mostUsePercent", "utilizationThresholdPercent");
  f.Number(
      "utilizationThresholdPercent", file.most_use_percent, 0, 100,
      "A node is kept if its pods use more than this percentage of the scarcest of its CPU, memory "
      "and GPUs.");
  f.Renamed("mostEmptied", "maxConcurrentDrains");
  f.Number("maxConcurrentDrains", file.most_emptied, 1, 100,
           "Maximum number of nodes drained at the same time.");
  f.Renamed("removalDeadlineSeconds", "removalTimeoutSeconds");
  f.Seconds("removalTimeoutSeconds", c.removal_deadline, seconds(1), hours(24),
            "Time after its pool shrinks when a node that still exists is reported.");
}

void DescribeMoves(ConfigFields& f, AutoscalerFile& file) {
  controllers::AutoscalerConfig& c = file.controller;
  f.Flag("enabled", c.moves, "Move running pods if that frees capacity for a pending pod.");
  f.Seconds("afterSeconds", c.move_after, milliseconds(10), hours(24),
            "Time that a pod must be pending before pods move for it.");
  f.Renamed("mostPerPod", "maxPerPod");
  f.Number("maxPerPod", file.most_moves, 1, 20,
           "Maximum number of pods that move for one pending pod.");
  f.Renamed("perHour", "maxPerHour");
  f.Number("maxPerHour", file.moves_per_hour, 1, 100'000,
           "Maximum number of moves per hour in the whole cluster.");
  // Default, unless the file sets maxPerNamespacePerHour.
  file.moves_per_namespace = std::min(file.moves_per_namespace, file.moves_per_hour);
  f.Renamed("perNamespaceAndHour", "maxPerNamespacePerHour");
  f.Number("maxPerNamespacePerHour", file.moves_per_namespace, 1, 100'000,
           "Maximum number of moves per hour in one namespace. At most maxPerHour.");
}

void DescribeRelocations(ConfigFields& f, controllers::RelocationConfig& c) {
  f.Flag(
      "localStorage", c.rules.local_storage,
      "If true, pods with data on their node (hostPath, emptyDir) may move without an annotation "
      "that allows it. The data is lost.");
  f.Renamed("holdDeadlineSeconds", "holdTimeoutSeconds");
  f.Seconds("holdTimeoutSeconds", c.hold_deadline, seconds(1), hours(24),
            "Time limit of holding all new places of a move. When it expires, the move is "
            "cancelled and no pod is evicted.");
  f.Renamed("drainDeadlineSeconds", "drainTimeoutSeconds");
  f.Seconds(
      "drainTimeoutSeconds", c.drain_deadline, seconds(1), hours(24),
      "Time limit of evictions. Pods that their disruption budgets still protect are not moved.");
  f.Renamed("successorDeadlineSeconds", "successorTimeoutSeconds");
  f.Seconds("successorTimeoutSeconds", c.successor_deadline, seconds(1), hours(1),
            "Time that the new place of an evicted pod is held for its replacement.");
  f.Renamed("evictAgainSeconds", "evictionRetrySeconds");
  f.Seconds("evictionRetrySeconds", c.evict_again, milliseconds(10), minutes(10),
            "Pause after a disruption budget rejects an eviction.");
}

}  // namespace

void DescribeAutoscaler(ConfigFields& f, AutoscalerFile& file) {
  controllers::AutoscalerConfig& c = file.controller;
  f.Word("objective", file.objective, {"pods", "compute", "memory"},
         "Objective among pods of equal priority: what to serve most of. The same as the "
         "partitioner's.");
  DescribePlanningFiles(f, file.files);
  DescribeGrowth(f, c);
  f.Group("scaleDown", [&] { DescribeShrink(f, file); });
  f.Group("moves", [&] { DescribeMoves(f, file); });
  f.Group("relocations", [&] { DescribeRelocations(f, c.relocations); });
  f.Group("placeholders", [&] {
    f.Text("namespace", file.ns,
           "Namespace of placeholder pods and of pods that signal demand. Empty: the namespace of "
           "this pod.");
    f.Text("image", file.image, "Image of these pods: the image of nos. Required.");
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
  if (c.longest_close < c.close_for) {
    return Invalid("maxBackoffSeconds: must be at least backoffSeconds");
  }
  if (file.moves_per_namespace > file.moves_per_hour) {
    return Invalid("moves.maxPerNamespacePerHour: must be at most moves.maxPerHour");
  }
  return Status::Ok();
}

controllers::AutoscalerConfig OptionsOf(const AutoscalerFile& file) {
  controllers::AutoscalerConfig c = file.controller;
  c.objective = planning::FindObjective(file.objective).value_or(planning::Objective::kPods);
  c.most_use = static_cast<double>(file.most_use_percent) / 100;
  c.most_emptied = static_cast<int>(file.most_emptied);
  c.most_moves = static_cast<int>(file.most_moves);
  c.moves_per_hour = static_cast<int>(file.moves_per_hour);
  c.moves_per_namespace = static_cast<int>(file.moves_per_namespace);
  const std::string ns = file.ns.empty() ? OwnNamespace() : file.ns;
  const std::vector<std::string> command{"nos", "hold"};
  c.relocations.ns = c.signal.ns = ns;
  c.relocations.image = c.signal.image = file.image;
  c.relocations.command = c.signal.command = command;
  c.relocations.priority_class = file.place_class;
  c.signal.priority_class = file.priority_class;
  return c;
}

}  // namespace nos::cmd
