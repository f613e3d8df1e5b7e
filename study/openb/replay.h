// The published protocol for packing GPU fractions (Alibaba openb traces, "Beware of
// Fragmentation", ATC'23): pods arrive one by one until they have asked for `inflation` times the
// cluster's GPUs; none ever leaves; one that fits nowhere is dropped. What counts is the share of
// GPU allocated.
//
//   NOS_ASSIGN(OpenbReport report, RunOpenb({.nodes_text = nodes, .pods_text = pods, .seed = 42}));
//   std::cout << ToText(report);
//
// Pure: the same options give the same report. Checked in every run, as kInternal: no pod is placed
// where it does not fit, none is dropped that fits somewhere, and at the end each node has left
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
  std::string_view nodes_name = "nodes";  // the files' names, for error messages
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
  double arrived_share = 0;     // requested GPUs over the cluster's, at the end
  double allocated_share = 0;   // allocated GPUs over the cluster's, at the end, 0 to 1
  double first_dropped_at = 0;  // arrived share when the first pod was dropped; 0 = none was

  // The published measure: for each whole per cent of arrivals, the mean allocated share over the
  // arrivals that round to it. A per cent that no arrival rounds to is left out.
  struct Point {
    int arrived_percent = 0;
    double allocated_share = 0;
  };
  std::vector<Point> curve;
};

// Error: kInvalid for bad files and options, kInternal when a check fails.
Result<OpenbReport> RunOpenb(const OpenbOptions& options);

Json ToJson(const OpenbReport& report);
// For people: a summary and the curve in steps of ten per cent.
std::string ToText(const OpenbReport& report);

}  // namespace nos::study
