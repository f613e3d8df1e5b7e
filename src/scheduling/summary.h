// The summary of a pod in any state, in the same sentences wherever it is read: why it waits or
// where it runs, what is in its way, what helps, and when it starts.
//
//   const PodSummary summary = Summarize(FactsOf(explanation));           // of a whole cluster
//   const PodSummary summary = Summarize(controllers::FactsOf(pod));      // of its conditions
//
// Conditions and Events carry the reasons and the remedy of a pod as text alone (kRemedySeparator).
// A summary of a pending pod is therefore a function of these texts, so that a reader of conditions
// and a search in the cluster arrive at the same one.
//
// Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "cluster/objects.h"
#include "codec/json.h"
#include "scheduling/remedies.h"

namespace nos::scheduling {

struct Explanation;

struct PodSummary {
  struct Action {
    std::string text;    // one sentence without a full stop
    std::string brings;  // its effect: "it then fits there"
    friend bool operator==(const Action&, const Action&) = default;
  };
  std::string headline;                 // one sentence that names the pod
  std::string cause;                    // "": none is known
  std::vector<std::string> in_the_way;  // pods, gates and other objects that it waits for
  std::vector<Action> actions;          // the best first
  std::optional<Time> eta;              // start of a pending pod
  std::string eta_reason;               // source of `eta`, or why nobody knows it
  std::string evictable_by;             // of a running pod: the pods that could evict it
};

// An eviction for another pod, from the condition DisruptionTarget.
struct PodEviction {
  std::string by;         // the scheduler; "": unknown
  std::string preemptor;  // "pod ml/a", or "a pod of another namespace"; "": unknown
  std::string why;        // message of the condition
  bool for_quota = false;
};

struct PodFacts {
  std::string pod;  // "namespace/name"
  // "pending", "starting", "running", "succeeded", "failed", "terminating"
  std::string state;
  std::string demand;  // as DemandText
  std::string cause;   // of a pending pod: its reasons; else the status' reason and message
  std::string remedy;  // of a pending pod; "": none is known
  // Further remedies, of a search in the whole cluster.
  std::vector<std::string> other_remedies = {};
  // Set by a search if the pod is on its way to a node: the headline.
  std::string progress = {};
  bool partitioning = false;  // the GPUs of its node are being partitioned for it
  std::string node = {};
  std::vector<std::string> devices = {};  // "3g.20gb@4 of GPU 2"
  std::optional<Time> since = {};         // its start, or its end
  std::optional<Time> ends = {};          // deadline of its deletion
  int64_t priority = 0;
  std::string capacity = {};  // value of the label nos.nebuly.com/capacity; "": no quota counts it
  std::vector<std::string> evictors = {};  // pending pods for which it would be evicted now
  std::optional<PodEviction> eviction = {};
  // A telemetry server estimates the start; `estimate_by`: its source, or why there is none.
  std::optional<Time> estimate = {};
  std::string estimate_by = {};
};

PodSummary Summarize(const PodFacts& facts);
PodFacts FactsOf(const Explanation& why);

// "2 x 1g.5gb and 3g.20gb", "1 x gpu"; "" without GPUs. Amounts by resource name, in any order.
std::string DemandText(std::vector<std::pair<std::string, int64_t>> requests);
std::string DemandText(const cluster::Pod& pod);

// A condition's message without its remedy, and the remedy without its full stop.
std::pair<std::string, std::string> SplitRemedy(std::string_view message);
// The code of a remedy, from its text alone: one of `remedies`; "" for "".
std::string_view RemedyCodeOf(std::string_view remedy);

// {"headline", "cause", "in_the_way", "actions": [{"text", "brings"}], "eta", "eta_reason",
// "evictable_by"}; "eta" is a time as Kubernetes writes it, or null.
JsonObject ToJson(const PodSummary& summary);

}  // namespace nos::scheduling
