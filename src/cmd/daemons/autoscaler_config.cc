#include "cmd/daemons/autoscaler_config.h"

#include <algorithm>

#include "planning/names.h"

namespace nos::cmd {
namespace {

using std::chrono::hours, std::chrono::milliseconds, std::chrono::minutes, std::chrono::seconds;

void DescribeGrowth(ConfigFields& f, controllers::AutoscalerConfig& c) {
  f.Seconds("settleSeconds", c.settle, milliseconds(10), hours(1),
            "A pod counts when it has been unschedulable for so long: cutting GPUs comes first.");
  f.Seconds("planBudgetSeconds", c.plan_budget, milliseconds(10), minutes(10),
            "The best plan found by then counts.");
  f.Seconds("readPoolsSeconds", c.read_again, seconds(1), hours(1),
            "How many nodes a pool wants is asked this often, of its scaled object or webhook.");
  f.Seconds("leastPatienceSeconds", c.least_patience, seconds(1), hours(24),
            "Nodes are late after twice their pool's startSeconds, but never before this.");
  const Duration usual = c.close_for;
  f.Seconds("closeSeconds", c.close_for, seconds(1), hours(24),
            "A pool whose nodes do not come is not asked again for so long; doubles each time.");
  c.longest_close = std::max(c.longest_close, c.close_for);  // unless the file says otherwise
  f.Seconds("longestCloseSeconds", c.longest_close, seconds(1), hours(24 * 7),
            "And never for longer than this. No less than closeSeconds.");
  if (c.close_for == usual) c.close_for = std::min(usual, c.longest_close);
}

void DescribeShrink(ConfigFields& f, AutoscalerFile& file) {
  controllers::AutoscalerConfig& c = file.controller;
  f.Flag("enabled", c.shrink, "Nodes that are not needed are emptied and taken away.");
  f.Seconds("afterSeconds", c.shrink_after, milliseconds(10), hours(24),
            "A node goes when it could have gone for so long, and no pool has grown for as long.");
  f.Number("mostUsePercent", file.most_use_percent, 0, 100,
           "A node is left alone whose pods use more than this of the scarcest of its CPU, memory "
           "and GPUs.");
  f.Number("mostEmptied", file.most_emptied, 1, 100, "Nodes that are emptied at a time.");
  f.Seconds("removalDeadlineSeconds", c.removal_deadline, seconds(1), hours(24),
            "A node that is still there so long after its pool was made smaller is told of.");
}

void DescribeMoves(ConfigFields& f, AutoscalerFile& file) {
  controllers::AutoscalerConfig& c = file.controller;
  f.Flag("enabled", c.moves, "Running pods move where that makes room for one that waits.");
  f.Seconds("afterSeconds", c.move_after, milliseconds(10), hours(24),
            "Pods move for one that has waited so long.");
  f.Number("mostPerPod", file.most_moves, 1, 20, "Pods that move for one.");
  f.Number("perHour", file.moves_per_hour, 1, 100'000, "In the whole cluster.");
  // Unless the file says otherwise.
  file.moves_per_namespace = std::min(file.moves_per_namespace, file.moves_per_hour);
  f.Number("perNamespaceAndHour", file.moves_per_namespace, 1, 100'000,
           "Of one namespace. No more than perHour.");
}

void DescribeRelocations(ConfigFields& f, controllers::RelocationConfig& c) {
  f.Flag("localStorage", c.rules.local_storage,
         "Pods with data on their node (hostPath, emptyDir) may be moved, which loses it, without "
         "an annotation that says so.");
  f.Seconds("holdDeadlineSeconds", c.hold_deadline, seconds(1), hours(24),
            "New places that are not all held by then are given up; nobody was evicted.");
  f.Seconds("drainDeadlineSeconds", c.drain_deadline, seconds(1), hours(24),
            "Pods that their disruption budgets have not let go by then stay.");
  f.Seconds("successorDeadlineSeconds", c.successor_deadline, seconds(1), hours(1),
            "The place of an evicted pod is kept so long for the one that follows it.");
  f.Seconds("evictAgainSeconds", c.evict_again, milliseconds(10), minutes(10),
            "After a disruption budget has refused.");
}

}  // namespace

void DescribeAutoscaler(ConfigFields& f, AutoscalerFile& file) {
  controllers::AutoscalerConfig& c = file.controller;
  f.Word("objective", file.objective, {"pods", "compute", "memory"},
         "What to serve most of, among pods of equal priority. As the partitioner has it.");
  DescribePlanningFiles(f, file.files);
  DescribeGrowth(f, c);
  f.Group("scaleDown", [&] { DescribeShrink(f, file); });
  f.Group("moves", [&] { DescribeMoves(f, file); });
  f.Group("relocations", [&] { DescribeRelocations(f, c.relocations); });
  f.Group("placeholders", [&] {
    f.Text("namespace", file.ns,
           "Where pods are made that hold places or show demand. Empty: that of this pod.");
    f.Text("image", file.image, "What runs in them: the image of nos. Required.");
    f.Text("priorityClass", file.place_class,
           "Of pods that hold places: with preemptionPolicy Never, and of a value that nobody "
           "preempts. Empty: that of the pod that moves; kube-scheduler may then preempt for it.");
    f.Text("demandPriorityClass", file.priority_class,
           "Of pods that show demand to another autoscaler: below all others, and not below the "
           "-10 of which cluster-autoscaler still takes notice. Empty: the cluster's default.");
  });
  f.Flag("provisioningRequests", c.signal.provisioning_requests,
         "Pools with signal: ProvisioningRequest may be used; their rights and definition are "
         "there.");
  f.Group("webhook", [&] { DescribePoolWebhook(f, file.webhook); });
  f.Group("leaderElection", [&] { DescribeLeader(f, file.leader); });
  DescribeDaemon(f, file.daemon);
}

Status CheckAutoscaler(const AutoscalerFile& file) {
  NOS_RETURN_IF_ERROR(CheckLeader(file.leader));
  NOS_RETURN_IF_ERROR(CheckPoolWebhook(file.webhook));
  const controllers::AutoscalerConfig& c = file.controller;
  if (c.longest_close < c.close_for) {
    return Invalid("longestCloseSeconds: must be at least closeSeconds");
  }
  if (file.moves_per_namespace > file.moves_per_hour) {
    return Invalid("moves.perNamespaceAndHour: must be at most moves.perHour");
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
