// Reports jobs, queues, node pools and Events, from objects that the collector watches itself.
#include <algorithm>
#include <utility>

#include "controllers/collector.h"
#include "controllers/pool_standing.h"

namespace nos::controllers {
namespace {

// An Event may arrive before its pod. If the pod does not arrive in this time, the Event is
// dropped.
constexpr Duration kPatience = std::chrono::seconds(30);
constexpr size_t kMaxEarly = 1000;
constexpr Duration kSettles = std::chrono::seconds(20);

bool AsksForGpus(const cluster::Pod& pod) {
  return pod.HasClaims() || std::ranges::any_of(cluster::PodRequests(pod), [](const auto& request) {
           return IsOfGpus(request.first);
         });
}

bool HasGpus(const cluster::Node& node) {
  const auto of_gpus = [](const auto& entry) { return IsOfGpus(entry.first); };
  return std::ranges::any_of(node.capacity, of_gpus) ||
         std::ranges::any_of(node.meta.labels, of_gpus);
}

}  // namespace

WorkSink Collector::Sink() {
  WorkSink sink;
  sink.take_job = [this](const cluster::Job& job) { return jobs_.Put(job); };
  sink.take_workload = [this](const cluster::KueueWorkload& work) { return jobs_.Put(work); };
  sink.take_queue = [this](const cluster::KueueQueue& queue) { return jobs_.Put(queue); };
  sink.take_pool = [this](const cluster::NodePool& pool) {
    pools_.by_name[pool.meta.name] = std::make_shared<const cluster::NodePool>(pool);
    pools_.changed = true;
    return true;
  };
  sink.gone = [this](std::string_view kind, std::string_view ns, std::string_view name) {
    if (kind == cluster::kNodePool) {
      pools_.by_name.erase(std::string(name));
      pools_.changed = true;
      return;
    }
    jobs_.RemovePart(kind, ns, name);
  };
  if (!options_.events) return sink;
  sink.take_event = [this](const cluster::KubernetesEvent& event) {
    if (TakeInEvent(*following_, event)) return;
    early_.emplace_back(now_, event);
    if (early_.size() > kMaxEarly) early_.pop_front();
  };
  return sink;
}

void Collector::Follow(const reconcile::Listers& view, kube::Client& client, const Clock& clock) {
  if (!leads_ || !reported_.all) return;
  now_ = clock.Now();
  if (watch_ == nullptr) watch_ = std::make_unique<WorkWatch>(Sink(), options_.watch);
  following_ = &view;
  watch_->Pump(client, now_);
  std::erase_if(early_, [&](const auto& early) {
    return TakeInEvent(view, early.second) || now_ - early.first > kPatience;
  });
  if (pools_.changed || now_ >= pools_.due) ReportPools(view);
  for (JsonObject& record : events_.Take(now_)) records_.emplace_back(std::move(record));
  ReportChanges();
}

// Recomputed from all pools: the node count of a pool depends on the pools before it.
void Collector::ReportPools(const reconcile::Listers& view) {
  pools_.changed = false;
  pools_.due = Time::max();
  std::vector<std::shared_ptr<const cluster::NodePool>> pools;
  for (const auto& [name, pool] : pools_.by_name) {
    pools.push_back(pool);
    const Time opens = pool->closed_until.value_or(Time::min());
    if (opens > now_) pools_.due = std::min(pools_.due, opens);
  }
  const auto nodes = view.nodes.Snapshot();
  for (const PoolCount& count : CountPools(*nodes, pools)) {
    ReportNew(reported_.pools[count.pool->meta.name], PoolRecord(count, now_));
  }
  std::erase_if(reported_.pools, [&](const auto& last) {
    if (pools_.by_name.contains(last.first)) return false;
    ReportRemoved("pool", last.first);
    return true;
  });
}

// True for Events about GPUs: of pods that request GPUs, nodes that have GPUs, quotas, reported
// Jobs, and node pools. Other projects also have a kind NodePool, so the name must be known.
std::optional<bool> Collector::Concerns(const reconcile::Listers& view,
                                        const cluster::KubernetesEvent& event) const {
  if (event.kind == "Pod") {
    const Pod pod = view.pods.Get(kube::KeyOf(event.ns, event.name));
    return pod == nullptr ? std::optional<bool>() : AsksForGpus(*pod);
  }
  if (event.kind == "Node") {
    const Node node = view.nodes.Get(event.name);
    return node == nullptr ? std::optional<bool>() : HasGpus(*node);
  }
  if (event.kind == "Job") {
    if (jobs_.Knows(event.ns, event.name)) return true;
    // Most of them concern Jobs without GPUs.
    return event.type == "Warning" ? std::optional<bool>() : false;
  }
  if (event.kind == cluster::kNodePool) return pools_.by_name.contains(event.name);
  return event.kind == cluster::kElasticQuota || event.kind == cluster::kCompositeQuota;
}

bool Collector::TakeInEvent(const reconcile::Listers& view, const cluster::KubernetesEvent& event) {
  const std::optional<bool> concerns = Concerns(view, event);
  if (!concerns.value_or(false)) return concerns.has_value();
  const bool no_pods = event.kind == "Job" && event.reason == "FailedCreate";
  if (no_pods) jobs_.SetTrouble(event.ns, event.name, event.message);
  if (!events_.Put(event)) return true;
  if (auto decision = ScalingRecord(event)) records_.emplace_back(*std::move(decision));
  return true;
}

// Waits for the first list of job objects, so that a job is not reported twice. The list of
// existing ids is reported only when it is complete: the server removes everything that is not in
// it.
void Collector::ReportChanges() {
  const bool settled = watch_ != nullptr && watch_->settled();
  if (settled || reported_.jobs || now_ - reported_.all_at >= kSettles) {
    for (JsonObject& record : jobs_.TakeChanges()) Emit(std::move(record));
  }
  if (!reported_.jobs && settled) {
    ReportPresent("job", jobs_.Ids("job"));
    ReportPresent("queue", jobs_.Ids("queue"));
    JsonArray pools;
    for (const auto& [name, pool] : pools_.by_name) pools.emplace_back(name);
    ReportPresent("pool", std::move(pools));
    reported_.jobs = true;
  }
  if (!records_.empty()) report_(std::exchange(records_, {}));
}

}  // namespace nos::controllers
