// The published protocol for packing GPU fractions (Alibaba openb traces, "Beware of
// Fragmentation", ATC'23). Pods arrive one by one until their requests reach `inflation` times the
// cluster's GPUs. No pod leaves. A pod that fits nowhere is dropped. The result is the allocated
// share of GPUs.
//
//   NOS_ASSIGN(OpenbReport report, RunOpenb({.nodes_text = nodes, .pods_text = pods, .seed = 42}));
//   std::cout << ToText(report);
//
// Pure: the same options give the same report. Every run is checked (kInternal): each pod fits
// where it is placed, a dropped pod fits nowhere, and at the end the free resources of each node
// match its pods.
// exactly what its pods have not taken.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "codec/json.h"
#include "study/openb/policies.h"

namespace nos::study {

struct OpenbOptions {
  std::string_view nodes_text;  // see trace.h for the format
  std::string_view pods_text;
  std::string_view nodes_name = "nodes";  // file names for error messages
  std::string_view pods_name = "pods";
  double inflation = 1.3;  // above 0, at most 100
  uint64_t seed = 42;      // of the order of pods and nodes
  OpenbPolicy policy = OpenbPolicy::kNos;
};

struct OpenbReport {
  std::string policy;
  double inflation = 0;
  uint64_t seed = 0;
  size_t nodes = 0;
  size_t gpus = 0;
  size_t arrived_pods = 0;
  size_t placed_pods = 0;
  double arrived_share = 0;     // requested GPUs / GPUs of the cluster, at the end
  double allocated_share = 0;   // allocated GPUs / GPUs of the cluster, at the end, 0 to 1
  double first_dropped_at = 0;  // arrived share when the first pod was dropped; 0 if none was

  // The published metric: for each whole percent of arrivals, the mean allocated share over the
  // arrivals that round to it. Percentages without arrivals are left out.
  struct Point {
    int arrived_percent = 0;
    double allocated_share = 0;
  };
  std::vector<Point> curve;
};

// Error: kInvalid for invalid files and options, kInternal if a check fails.
Result<OpenbReport> RunOpenb(const OpenbOptions& options);

Json ToJson(const OpenbReport& report);
// A summary, and the curve in steps of 10 %.
std::string ToText(const OpenbReport& report);

}  // namespace nos::study
