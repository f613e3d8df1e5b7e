// What a node tells of its GPUs: samples as records (docs/telemetry.md). Pure.
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
#include "telemetry/node_sample.h"

namespace nos::telemetry {

// An error that the driver has reported.
struct XidEvent {
  Time at{};
  int gpu = 0;  // GpuInfo::index
  uint64_t xid = 0;
  std::string message{};
};

class Sampler {
 public:
  explicit Sampler(Duration layout_every = std::chrono::minutes(5)) : layout_every_(layout_every) {}

  // Records of kind gpu, instance and xid, and layout when it has changed or was last told so long
  // ago. No layout while it is not known who holds what: the last one stands. So do the instances
  // of a GPU that cannot be read.
  std::vector<std::string> Records(const NodeSample& sample, std::span<const XidEvent> xids,
                                   Time now);

 private:
  JsonObject LayoutOf(const NodeSample& sample, const SampledGpu& gpu);

  Duration layout_every_;
  std::map<int, JsonArray> instances_;                                    // by GPU, as last known
  std::map<int, std::pair<std::string, std::vector<std::string>>> ways_;  // way and switches, too
  std::string layout_;  // as last told, without its time
  Time layout_at_{};
};

// {"gpus": [...]} with metrics, what is unmeasured and why, and holders, for people who ask a node.
Json SampleJson(const NodeSample& sample);

}  // namespace nos::telemetry
