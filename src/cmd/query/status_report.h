// Output of `nos status`: a cluster's GPUs, pods and quotas on one screen. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cmd/query/get_report.h"
#include "codec/json.h"

namespace nos::cmd {

// Pending pods of one namespace with the same requests and the same reason.
struct WaitingGroup {
  std::string ns, requests, reason, message;  // `message` is that of the oldest pod
  std::string oldest;                         // its name
  size_t pods = 0;
  Duration longest{};
};

// The cost of the GPUs in the last hour, from the telemetry server.
struct HourCost {
  std::string currency;
  Json from, to;  // milliseconds since the epoch
  Json total;     // cost, GPU hours and categories
};
// `answer`: as in GET cost. Nullopt without prices, and if no GPU was reported.
std::optional<HourCost> HourCostOf(const Json& answer);

// A decision, as a telemetry server says it.
struct RecentStory {
  Duration age{};
  std::string sentence;
};
// `answer`: as in GET stories, the newest first. `now`: milliseconds since the epoch. Malformed
// stories are left out.
std::vector<RecentStory> RecentStoriesOf(const Json& answer, int64_t now);

struct ClusterStatus {
  size_t nodes = 0;
  GpuSums gpus;
  size_t running = 0, starting = 0, pending = 0;  // pods that request GPUs
  size_t repartitioning = 0;                      // GPUs whose plan is not applied yet
  size_t quotas = 0, borrowing = 0, below_min = 0;
  std::optional<HourCost> cost;
  std::optional<std::vector<RecentStory>> stories;  // of the last hour; nullopt: not known
  std::vector<WaitingGroup> waiting;                // longest first
  std::vector<std::string> attention;               // one sentence each
};

ClusterStatus StatusOf(const LiveCluster& live, Time now);
// Lines of at most `width` characters; at most `groups` groups of pending pods.
std::string ToText(const ClusterStatus& status, size_t width, size_t groups);
Json ToJson(const ClusterStatus& status);

}  // namespace nos::cmd
