// Converts samples of a node's GPUs to records (docs/telemetry.md). Pure functions of the sampler's
// state.
//
//   Sampler sampler;
//   spool->Append(sampler.Records(sample, clock.Now()));
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "codec/json.h"
#include "telemetryreporter/node_sample.h"

namespace nos::telemetry {

// An XID error reported by the driver.
struct XidEvent {
  Time at{};
  int gpu = 0;  // GpuInfo::index
  uint64_t xid = 0;
  std::string message{};
};

class Sampler {
 public:
  explicit Sampler(Duration layout_every = std::chrono::minutes(5)) : layout_every_(layout_every) {}

  // Returns records of kind gpu, instance and xid, and a layout if it changed or the last one is
  // older than the layout interval. While holders are not known, no layout is reported and the last
  // one stays valid. Instances of a GPU that cannot be read keep their last known state.
  std::vector<std::string> Records(const NodeSample& sample, std::span<const XidEvent> xids,
                                   Time now);

 private:
  JsonObject LayoutOf(const NodeSample& sample, const SampledGpu& gpu);

  Duration layout_every_;
  std::map<int, JsonArray> instances_;  // by GPU, last known
  std::map<int, std::pair<std::string, std::vector<std::string>>>
      sharing_modes_;   // sharing mode and switches by GPU, last known
  std::string layout_;  // last reported, without its time
  Time layout_at_{};
};

// {"gpus": [...]} with metrics, unmeasured values with reasons, and holders, for `-o json`.
Json SampleJson(const NodeSample& sample);

}  // namespace nos::telemetry
