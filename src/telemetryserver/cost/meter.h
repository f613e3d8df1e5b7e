// Divides the price of every GPU of a cluster while its state changes, over up to an hour.
//
//   Meter meter(state, prices, catalogue, measured, {from, now, stale});
//   for (const Event& event : events) meter.Apply(event);   // in order of time
//   const Ledger ledger = std::move(meter).Until(to);
//
// A GPU costs its price from the first layout that has it until its node is removed. Each interval
// ends where the node changes, a pod on it changes, or a window of measurements ends. The demand of
// pending pods, which decides about fragmented and stranded slots, is read at the beginning of each
// window.
//
// Pure: no input or output. Internal to this library.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gpu/catalogue.h"
#include "telemetryserver/cost/gpu_parts.h"
#include "telemetryserver/cost/ledger.h"
#include "telemetryserver/cost/measured.h"
#include "telemetryserver/prices.h"
#include "telemetryserver/state.h"
#include "telemetryserver/state/free_slots.h"
#include "telemetryserver/store/archive.h"

namespace nos::telemetryserver {

class Meter {
 public:
  struct Times {
    telemetry::Millis from = 0;
    telemetry::Millis now = 0;
    telemetry::Millis stale = 0;  // a node that reported within this time before now is not silent
  };
  // All arguments must outlive this object. `state`: at times.from.
  Meter(State& state, const PriceList& prices, const gpu::Catalogue& catalogue,
        const Measured& measured, const Times& times);

  void Apply(const Event& event);
  Ledger Until(telemetry::Millis to) &&;

 private:
  // A pod's job and quota in history.
  struct PodFacts {
    std::string job, quota;
    bool borrowed = false;
  };
  using PodName = std::pair<std::string, std::string>;  // namespace and name

  static PodFacts FactsOf(const Pod& pod);
  void AdvanceTo(telemetry::Millis at);
  void BillAll(telemetry::Millis to);
  void Bill(const Node& node, telemetry::Millis to);
  void BillGpu(const Node& node, const telemetry::Gpu& gpu, telemetry::Millis from,
               telemetry::Millis to);
  bool Reported(const Node& node, const telemetry::Gpu& gpu, telemetry::Millis at) const;
  // `key`: with model and pool.
  CostKey KeyOf(const GpuPart& part, CostKey key) const;
  // Names of nodes that the event may change.
  std::vector<std::string> NodesOf(const Event& event);
  const PodFacts* Find(const std::string& ns, const std::string& name, PodFacts& facts) const;

  State& state_;
  const PriceList& prices_;
  const gpu::Catalogue& catalogue_;
  const Measured& measured_;
  const Times times_;
  telemetry::Millis billed_;                                    // all nodes are billed until then,
  std::unordered_map<std::string, telemetry::Millis> of_node_;  // these longer
  std::unique_ptr<FreeSlots> free_;                             // of the window
  std::map<PodName, PodFacts> removed_;                         // pods that were removed meanwhile
  Ledger ledger_;
};

}  // namespace nos::telemetryserver
