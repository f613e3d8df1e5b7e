#include "scheduling/packing/node_value.h"

#include <algorithm>
#include <cmath>

#include "scheduling/packing/size_prices.h"

namespace nos::scheduling::packing {
namespace {

constexpr double kRareShare = 0.004;  // share of arrivals at which a kind counts 63 %
constexpr double kBalanceWeight = 1 / 30.0;

double Cores(int64_t cpu_milli) { return static_cast<double>(cpu_milli) / 1000; }
double Gib(int64_t memory_mib) { return static_cast<double>(memory_mib) / 1024; }

uint64_t Rank(const std::vector<int64_t>& steps, int64_t amount) {
  return std::upper_bound(steps.begin(), steps.end(), amount) - steps.begin();
}

void SortUnique(std::vector<int64_t>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

}  // namespace

NodeValue::NodeValue(const Demand& demand) {
  LearnBalance(demand);
  PickKinds(demand);
  PriceKinds();
  RankOffers();
}

void NodeValue::LearnBalance(const Demand& demand) {
  double gpus = 0, cores = 0, gib = 0;
  for (const auto& [pod, count] : demand.counts()) {
    if (pod.gpus == 0) continue;
    const auto pods = static_cast<double>(count);
    gpus += pods * pod.gpus * pod.milli / kWholeGpu;
    cores += pods * Cores(pod.cpu_milli);
    gib += pods * Gib(pod.memory_mib);
  }
  gpus_per_core_ = cores > 0 ? gpus / cores : 0;
  gpus_per_gib_ = gib > 0 ? gpus / gib : 0;
}

void NodeValue::PickKinds(const Demand& demand) {
  std::vector<std::pair<int64_t, PodKind>> seen;
  for (const auto& [pod, count] : demand.counts()) {
    if (pod.gpus == 1) seen.emplace_back(count, pod);
  }
  std::stable_sort(seen.begin(), seen.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  seen.resize(std::min(seen.size(), kMaxKinds));
  for (const auto& [count, pod] : seen) {
    const auto pods = static_cast<double>(count);
    const double share = pods / static_cast<double>(demand.total());
    kinds_.push_back({.pod = pod, .count = pods, .probability = 1 - std::exp(-share / kRareShare)});
    cpu_steps_.push_back(pod.cpu_milli);
    memory_steps_.push_back(pod.memory_mib);
    models_matter_ |= pod.models != kAnyModel;
  }
  SortUnique(cpu_steps_);
  SortUnique(memory_steps_);
}

void NodeValue::PriceKinds() {
  std::map<int, double> count_of;  // by size
  for (const Kind& kind : kinds_) count_of[kind.pod.milli] += kind.count;
  std::vector<SizeDemand> sizes;
  sizes.reserve(count_of.size());
  for (const auto& [milli, count] : count_of) sizes.push_back({milli, count});
  cell_ = CellMilli(sizes);
  const std::vector<double> prices = PriceSizes(sizes);
  for (const SizeDemand& size : sizes) widths_.push_back(size.milli / cell_);
  for (Kind& kind : kinds_) {
    kind.size = std::distance(count_of.begin(), count_of.find(kind.pod.milli));
    kind.price = prices[kind.size];
  }
}

void NodeValue::RankOffers() {
  for (size_t lane = 0; lane < kLanes; ++lane) {
    const double per_core = kCorePrices[lane / kGibPrices.size()];
    const double per_gib = kGibPrices[lane % kGibPrices.size()];
    for (size_t k = 0; k < kinds_.size(); ++k) {
      const double net = kinds_[k].price - per_core * Cores(kinds_[k].pod.cpu_milli) -
                         per_gib * Gib(kinds_[k].pod.memory_mib);
      if (net > 0) offers_[lane].push_back({k, net});
    }
    std::stable_sort(offers_[lane].begin(), offers_[lane].end(),
                     [&](const Offer& a, const Offer& b) {
                       const size_t size_a = kinds_[a.kind].size, size_b = kinds_[b.kind].size;
                       return size_a != size_b ? size_a < size_b : a.net > b.net;
                     });
  }
}

const NodeValue::Table& NodeValue::TableFor(int64_t cpu_milli, int64_t memory_mib, int model) {
  const uint64_t key =
      (Rank(cpu_steps_, cpu_milli) * (kMaxKinds + 1) + Rank(memory_steps_, memory_mib)) *
          kMaxModels +
      (models_matter_ ? model : 0);
  const auto found = tables_.find(key);
  if (found != tables_.end()) return found->second;
  const size_t table_bytes = (kWholeGpu / cell_ + 1) * sizeof(Lanes);
  if ((tables_.size() + 1) * table_bytes > kMaxTableBytes) tables_.clear();
  return tables_.emplace(key, MakeTable(cpu_milli, memory_mib, model)).first->second;
}

// Value of one slice of each size: expected net price of the best kind that fits and arrives.
std::vector<NodeValue::Lanes> NodeValue::SizeValues(int64_t cpu_milli, int64_t memory_mib,
                                                    int model) const {
  std::vector<char> fits;
  fits.reserve(kinds_.size());
  for (const Kind& kind : kinds_) {
    fits.push_back(kind.pod.cpu_milli <= cpu_milli && kind.pod.memory_mib <= memory_mib &&
                           (kind.pod.models >> model & 1) != 0
                       ? 1
                       : 0);
  }
  std::vector<Lanes> values(widths_.size(), Lanes{});
  std::vector<double> none(widths_.size());  // probability that no better kind arrives
  for (size_t lane = 0; lane < kLanes; ++lane) {
    std::fill(none.begin(), none.end(), 1.0);
    for (const Offer& offer : offers_[lane]) {
      if (fits[offer.kind] == 0) continue;
      const Kind& kind = kinds_[offer.kind];
      values[kind.size][lane] += offer.net * kind.probability * none[kind.size];
      none[kind.size] *= 1 - kind.probability;
    }
  }
  return values;
}

NodeValue::Table NodeValue::MakeTable(int64_t cpu_milli, int64_t memory_mib, int model) const {
  const std::vector<Lanes> values = SizeValues(cpu_milli, memory_mib, model);
  const int cells = kWholeGpu / cell_;
  Table table(cells + 1, Lanes{});
  for (int c = 1; c <= cells; ++c) {
    table[c] = table[c - 1];
    for (size_t i = 0; i < widths_.size() && widths_[i] <= c; ++i) {
      const Lanes& rest = table[c - widths_[i]];
      for (size_t lane = 0; lane < kLanes; ++lane) {
        table[c][lane] = std::max(table[c][lane], rest[lane] + values[i][lane]);
      }
    }
  }
  return table;
}

double NodeValue::Total(int64_t cpu_milli, int64_t memory_mib, int64_t idle_milli,
                        const Lanes& sum) const {
  const double cores = Cores(cpu_milli), gib = Gib(memory_mib);
  const double idle = static_cast<double>(idle_milli) / kWholeGpu;
  double value = std::numeric_limits<double>::infinity();
  for (size_t lane = 0; lane < kLanes; ++lane) {
    value = std::min(value, sum[lane] + kCorePrices[lane / kGibPrices.size()] * cores +
                                kGibPrices[lane % kGibPrices.size()] * gib);
  }
  double unfed = 0;
  if (gpus_per_core_ > 0) unfed += std::max(0.0, idle - cores * gpus_per_core_);
  if (gpus_per_gib_ > 0) unfed += std::max(0.0, idle - gib * gpus_per_gib_);
  return value - kBalanceWeight * unfed;
}

double NodeValue::Worth(const Node& node) { return AfterPlacing(node, PodKind{}).worth; }

NodeValue::After NodeValue::AfterPlacing(const Node& node, const PodKind& kind) {
  const int64_t cpu = node.cpu_milli - kind.cpu_milli;
  const int64_t memory = node.memory_mib - kind.memory_mib;
  const Table& table = TableFor(cpu, memory, node.model);
  Lanes sum{};
  int64_t idle = -int64_t{kind.gpus} * kind.milli;
  for (const int left : node.gpu_milli) {
    const Lanes& hole = Hole(table, left);
    for (size_t lane = 0; lane < kLanes; ++lane) sum[lane] += hole[lane];
    idle += left;
  }
  // Worth if the pod is placed on `gpus` devices with `left` free each: their holes shrink.
  const auto worth_from = [&](int left) {
    const Lanes& before = Hole(table, left);
    const Lanes& after = Hole(table, left - kind.milli);
    Lanes rest = sum;
    for (size_t lane = 0; lane < kLanes; ++lane) {
      rest[lane] += kind.gpus * (after[lane] - before[lane]);
    }
    return Total(cpu, memory, idle, rest);
  };
  if (kind.gpus == 0) return {Total(cpu, memory, idle, sum)};
  if (kind.gpus > 1) return {worth_from(kWholeGpu)};
  After best;
  for (size_t i = 0; i < node.gpu_milli.size(); ++i) {
    const int left = node.gpu_milli[i];
    if (left < kind.milli) continue;
    const double worth = worth_from(left);
    if (best.device < 0 || worth > best.worth) best = {worth, static_cast<int>(i)};
  }
  return best;
}

}  // namespace nos::scheduling::packing
