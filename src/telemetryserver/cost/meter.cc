#include "telemetryserver/cost/meter.h"

#include <algorithm>
#include <utility>

#include "telemetryserver/cost/money.h"
#include "telemetryserver/state/readings.h"

namespace nos::telemetryserver {
namespace {

constexpr std::string_view kOverQuota = "over-quota";  // value of "capacity" of a pod's record
constexpr std::string_view kServer;                    // source of replayed events
// Quota of parts whose pod is not known yet: no quota has such a name.
constexpr std::string_view kLater = "\n";

std::string_view After(std::string_view text, std::string_view prefix) {
  return text.starts_with(prefix) ? text.substr(prefix.size()) : std::string_view();
}

}  // namespace

Meter::Meter(State& state, const PriceList& prices, const gpu::Catalogue& catalogue,
             const Measured& measured, const Times& times)
    : state_(state),
      prices_(prices),
      catalogue_(catalogue),
      measured_(measured),
      times_(times),
      billed_(times.from),
      free_(std::make_unique<FreeSlots>(state, catalogue)) {}

Meter::PodFacts Meter::FactsOf(const Pod& pod) {
  return {pod.job, pod.quota, FindString(pod.body, "capacity") == kOverQuota};
}

void Meter::Apply(const Event& event) {
  AdvanceTo(event.at);
  const std::vector<std::string> nodes = NodesOf(event);
  for (const std::string& name : nodes) {
    const auto node = state_.nodes().find(name);
    if (node != state_.nodes().end()) Bill(node->second, event.at);
    of_node_[name] = std::max(event.at, billed_);
  }
  if (const auto uid = After(event.object, "pod/"); event.kind == "removed" && !uid.empty()) {
    const auto pod = state_.pods().find(std::string(uid));
    if (pod != state_.pods().end()) {
      removed_[{pod->second.ns, pod->second.name}] = FactsOf(pod->second);
    }
  }
  if (state_.Restore(event.body)) return;
  auto record = telemetry::ReadRecord(event.body);
  if (record.ok()) state_.Apply(*record, kServer);
}

std::vector<std::string> Meter::NodesOf(const Event& event) {
  if (event.kind == "layout" || event.kind == "node") return {event.object};
  std::string ns(FindString(event.body, "namespace")), name(FindString(event.body, "name"));
  if (event.kind == "removed") {
    if (const auto node = After(event.object, "node/"); !node.empty()) return {std::string(node)};
    const auto pod = state_.pods().find(std::string(After(event.object, "pod/")));
    if (pod == state_.pods().end()) return {};
    ns = pod->second.ns;
    name = pod->second.name;
  } else if (event.kind != "pod") {
    return {};
  }
  std::vector<std::string> nodes;
  for (const Slice& slice : state_.SlicesOf(ns, name)) nodes.push_back(slice.node->name);
  return nodes;
}

// Bills window by window.
void Meter::AdvanceTo(telemetry::Millis at) {
  while (FloorTo(billed_, kCostWindow) + kCostWindow <= at) {
    BillAll(FloorTo(billed_, kCostWindow) + kCostWindow);
    free_ = std::make_unique<FreeSlots>(state_, catalogue_);
  }
}

void Meter::BillAll(telemetry::Millis to) {
  for (const auto& [name, node] : state_.nodes()) Bill(node, to);
  of_node_.clear();
  billed_ = to;
}

void Meter::Bill(const Node& node, telemetry::Millis to) {
  const auto of_node = of_node_.find(node.name);
  const telemetry::Millis from = of_node == of_node_.end() ? billed_ : of_node->second;
  if (from >= to) return;
  for (const telemetry::Gpu& gpu : node.layout.gpus) BillGpu(node, gpu, from, to);
}

void Meter::BillGpu(const Node& node, const telemetry::Gpu& gpu, telemetry::Millis from,
                    telemetry::Millis to) {
  const gpu::Model* known = free_->ModelOf(gpu.product);
  const std::string model = known == nullptr ? gpu.product : known->name();
  const auto price = PriceOf(
      prices_, {known == nullptr ? std::string_view() : model, gpu.product, node.body, from});
  const Micros time = CostOf(kMicrosPerUnit, from, to);
  const CostSums sums{price ? CostOf(*price, from, to) : 0, time, price ? 0 : time};
  const auto utilization = [&](const std::string& subject) {
    return measured_.Utilization(subject, from);
  };
  const GpuUse use{Reported(node, gpu, from), free_->AreStranded(node, gpu),
                   gpu.slots > 0 ? std::optional(free_->UsableOf(gpu)) : std::nullopt, utilization};
  const CostKey of_gpu{.model = model, .pool = std::string(PoolOf(node.body))};
  for (const GpuPart& part : PartsOf(gpu, use, sums)) ledger_.Add(KeyOf(part, of_gpu), part.sums);
}

bool Meter::Reported(const Node& node, const telemetry::Gpu& gpu, telemetry::Millis at) const {
  const auto in = [&](telemetry::Millis window) {
    if (measured_.Reported(SubjectOf(gpu), window)) return true;
    return std::ranges::any_of(gpu.instances, [&](const telemetry::Instance& instance) {
      return measured_.Reported(SubjectOf(instance), window);
    });
  };
  const telemetry::Millis window = FloorTo(at, kCostWindow);
  if (in(window) || node.layout_at >= window) return true;
  // The window has only begun: its first sample may be on its way.
  const bool begun = times_.now - window < times_.stale;
  return begun && (in(window - kCostWindow) || node.layout_at >= window - kCostWindow);
}

const Meter::PodFacts* Meter::Find(const std::string& ns, const std::string& name,
                                   PodFacts& facts) const {
  if (const Pod* pod = state_.FindPod(ns, name); pod != nullptr) {
    facts = FactsOf(*pod);
    return &facts;
  }
  const auto removed = removed_.find({ns, name});
  return removed == removed_.end() ? nullptr : &removed->second;
}

CostKey Meter::KeyOf(const GpuPart& part, CostKey key) const {
  key.category = part.category;
  if (part.holder == nullptr) return key;
  key.ns = part.holder->ns;
  key.pod = part.holder->pod;
  PodFacts found;
  const PodFacts* facts = Find(key.ns, key.pod, found);
  key.quota = facts == nullptr ? std::string(kLater) : facts->quota;
  if (facts == nullptr) return key;
  key.job = facts->job;
  key.borrowed = facts->borrowed;
  return key;
}

// Agents and operator report apart: a pod may hold a slice before its record arrives, and the
// record counts for that time too.
Ledger Meter::Until(telemetry::Millis to) && {
  AdvanceTo(to);
  BillAll(to);
  Ledger ledger;
  for (const auto& [key, sums] : ledger_.rows()) {
    CostKey settled = key;
    if (key.quota == kLater) {
      PodFacts found;
      const PodFacts* facts = Find(key.ns, key.pod, found);
      settled.quota = facts == nullptr ? "" : facts->quota;
      settled.job = facts == nullptr ? "" : facts->job;
      settled.borrowed = facts != nullptr && facts->borrowed;
    }
    ledger.Add(settled, sums);
  }
  return ledger;
}

}  // namespace nos::telemetryserver
