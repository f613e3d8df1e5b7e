#include "cmd/daemons/partitioner_config.h"

namespace nos::cmd {

void DescribePartitioner(ConfigFields& f, PartitionerFile& c) {
  using std::chrono::hours, std::chrono::milliseconds, std::chrono::minutes, std::chrono::seconds;
  controllers::PartitionerConfig& p = c.partitioner;
  f.Seconds("batchWindowTimeoutSeconds", p.batch_timeout, milliseconds(10), minutes(10),
            "Maximum time from the first pod of a batch to planning.");
  f.Seconds("batchWindowIdleSeconds", p.batch_idle, milliseconds(10), minutes(10),
            "Planning starts when no further pod has appeared for this long.");
  f.Word("objective", c.objective, {"pods", "compute", "memory"},
         "Objective among pods of equal priority: the served quantity to maximize.");
  DescribePlanningFiles(f, c.files);
  f.Renamed("planBudgetSeconds", "planTimeoutSeconds");
  f.Seconds("planTimeoutSeconds", p.plan_timeout, milliseconds(10), minutes(10),
            "Time limit of one planning run. When it expires, the best plan so far is used.");
  f.Renamed("answerDeadlineSeconds", "planAckTimeoutSeconds");
  f.Seconds("planAckTimeoutSeconds", p.plan_ack_timeout, seconds(1), hours(1),
            "Time limit of the agent's acknowledgement. A node whose agent exceeds it is not "
            "planned for a while.");
  f.Renamed("claimDeadlineSeconds", "sliceReservationTimeoutSeconds");
  f.Seconds("sliceReservationTimeoutSeconds", p.slice_reservation_timeout, seconds(1), hours(1),
            "Time that new slices stay reserved for their pod.");
  f.Seconds("holdAfterSeconds", p.hold_after, seconds(1), hours(24 * 30),
            "Pending time after which freed slices are kept free for a pod.");
  f.Group("leaderElection", [&] { DescribeLeader(f, c.leader); });
  DescribeDaemon(f, c.daemon);
  f.Retired("webhook", "this daemon serves no webhook");
  f.Retired("devicePluginConfigMap", "it was a setting of MPS partitioning");
  f.Retired("devicePluginDelaySeconds", "it was a setting of MPS partitioning");
}

}  // namespace nos::cmd
