// A pod from its own object: its state, why it waits, and the facts of its summary
// (scheduling/summary.h), as commands, checks and telemetry read them.
//
//   const scheduling::PodSummary summary = scheduling::Summarize(FactsOf(pod, pods));
//
// Pure functions.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/objects.h"
#include "scheduling/summary.h"

namespace nos::controllers {

// "pending", "starting", "running", "succeeded", "failed", "terminating".
std::string_view StateOf(const cluster::Pod& pod);

// Why a pending pod waits: its scheduling gates; else the partitioner's message with its remedy,
// else the scheduler's, else that of the pod's status.
struct Why {
  std::string reason, message;
};
Why WhyOf(const cluster::Pod& pod);
// The remedy of either of these messages, without its full stop; "": they have none.
std::string RemedyIn(const cluster::Pod& pod);

// `others`: pods among which the one is named for which this pod is evicted.
scheduling::PodFacts FactsOf(const cluster::Pod& pod,
                             const std::vector<std::shared_ptr<const cluster::Pod>>& others = {});

}  // namespace nos::controllers
