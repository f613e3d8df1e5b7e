// Cost of quotas: 1,000 quotas, 50,000 pods.
#include <benchmark/benchmark.h>

#include <string>

#include "quota/charge.h"
#include "quota/ledger.h"

namespace nos::quota {
namespace {

constexpr int kQuotas = 1000, kPods = 50'000;

Ledger::Pod PodAt(int i) {
  auto made = std::make_shared<cluster::Pod>();
  cluster::Pod& pod = *made;
  pod.meta.ns = "team-" + std::to_string(i % kQuotas);
  pod.meta.name = "pod-" + std::to_string(i);
  pod.containers.emplace_back().requests = {
      {"cpu", Quantity::FromMilli(500)},
      {"memory", Quantity::FromValue(int64_t{1} << 30)},
      {"nvidia.com/mig-1g.10gb", Quantity::FromValue(1 + i % 3)}};
  return made;
}

// `shared`: all use the memory of one parent, which alone limits it.
std::vector<SharedQuota> Quotas(bool shared = false) {
  std::vector<SharedQuota> quotas;
  for (int i = 0; i < kQuotas; ++i) {
    auto quota = std::make_shared<cluster::ElasticQuota>();
    quota->meta.ns = "team-" + std::to_string(i);
    quota->meta.name = "quota";
    quota->namespaces = {quota->meta.ns};
    quota->min = {{"cpu", Quantity::FromValue(40)},
                  {"memory", Quantity::FromValue(int64_t{64} << 30)},
                  {std::string(kGpuMemory), Quantity::FromValue(1000)}};
    if (shared) {
      quota->min.erase("memory");
      quota->parent = "all/quota";
    }
    quotas.push_back(std::move(quota));
  }
  if (!shared) return quotas;
  auto parent = std::make_shared<cluster::ElasticQuota>();
  parent->meta.ns = "all";
  parent->meta.name = "quota";
  parent->namespaces = {"all"};
  parent->min = {{"cpu", Quantity::FromValue(int64_t{40} * kQuotas)},
                 {"memory", Quantity::FromValue(int64_t{32} << 40)},
                 {std::string(kGpuMemory), Quantity::FromValue(int64_t{1000} * kQuotas)}};
  quotas.push_back(std::move(parent));
  return quotas;
}

Ledger FullLedger(bool shared = false) {
  Ledger ledger;
  ledger.SetQuotas(Quotas(shared));
  for (int i = 0; i < kPods; ++i) {
    const Ledger::Pod pod = PodAt(i);
    ledger.SetPod(pod, ChargeOf(*pod, nullptr, {}));
  }
  return ledger;
}

// A pod ends and another one starts, beginning with their requests: two updates.
void Update(benchmark::State& state) {
  Ledger ledger = FullLedger();
  int i = 0;
  for (auto _ : state) {
    const Ledger::Pod pod = PodAt(i++ % kPods);
    ledger.RemovePod(pod->Key());
    ledger.SetPod(pod, ChargeOf(*pod, nullptr, {}));
  }
  state.SetItemsProcessed(state.iterations() * 2);
}
BENCHMARK(Update);

// The same with one parent's memory shared by all, and with the check whether each new pod is over
// quota.
void UpdateShared(benchmark::State& state) {
  Ledger ledger = FullLedger(true);
  for (size_t i = 0; i < ledger.balance().size(); ++i) (void)ledger.StandingOf(i);
  int i = 0;
  for (auto _ : state) {
    const Ledger::Pod pod = PodAt(i++ % kPods);
    ledger.RemovePod(pod->Key());
    ledger.SetPod(pod, ChargeOf(*pod, nullptr, {}));
    benchmark::DoNotOptimize(ledger.IsOverQuota(pod->Key()));
  }
  state.SetItemsProcessed(state.iterations() * 2);
}
BENCHMARK(UpdateShared);

// The check whether a pod may run.
void WhyNot(benchmark::State& state) {
  const Ledger ledger = FullLedger();
  const Amounts charge = ChargeOf(*PodAt(0), nullptr, {});
  size_t account = 0;
  for (auto _ : state) {
    account = (account + 1) % kQuotas;
    benchmark::DoNotOptimize(ledger.balance().WhyNot(account, charge));
  }
}
BENCHMARK(WhyNot);

void SetQuotas(benchmark::State& state) {
  Ledger ledger = FullLedger();
  const std::vector<SharedQuota> quotas = Quotas();
  for (auto _ : state) ledger.SetQuotas(quotas);
}
BENCHMARK(SetQuotas)->Unit(benchmark::kMillisecond);

void CopyForWhatIf(benchmark::State& state) {
  const Ledger ledger = FullLedger();
  for (auto _ : state) benchmark::DoNotOptimize(Balance(ledger.balance()));
}
BENCHMARK(CopyForWhatIf)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace nos::quota
