#include "cmd/sandbox/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <string>

#include "base/text.h"
#include "cluster/objects.h"
#include "cluster/resources.h"
#include "cmd/cli/gpu_sharing_mode.h"
#include "cmd/telemetry/read_cluster.h"
#include "quota/ledger.h"
#include "scheduling/claim_charges.h"
#include "scheduling/pod_state.h"
#include "scheduling/remedies.h"
#include "telemetryserver/stories.h"

namespace nos::cmd {
namespace {

// Product name of the GPU, independent of its sharing mode.
std::string ProductOf(const sim::Machine& machine, size_t index, const gpu::Catalogue& catalogue) {
  const auto board = sim::FindModel(catalogue, machine.kubelet().spec().gpus[index].model);
  return gpu::ProductOf(board.ok() ? (*board)->name() : machine.model(index).name());
}

// "" for a GPU that supports only MIG and has no instance yet.
std::string SharingModeOf(const sim::Machine& machine, size_t index,
                          const std::vector<device::GpuInstance>& instances) {
  if (!instances.empty()) return std::string(gpu::SharingModeOfProfile(instances[0].profile));
  const auto modes = gpu::SharingModesOf(machine.model(index), machine.alternative(index));
  const bool only_mig = std::ranges::all_of(modes, [](auto mode) { return mode == gpu::kMigMode; });
  return only_mig ? "" : SharingModeText("");
}

// Position of an instance. Whole GPUs and time slices take no slots.
SlotSpan SpanOf(const gpu::Model& model, const device::GpuInstance& instance) {
  SlotSpan span{instance.start, instance.size, instance.profile, ""};
  const auto profile = span.size > 0 ? std::nullopt : model.FindProfile(instance.profile);
  if (profile) span.size = model.profile(*profile).slots;
  return span;
}

GpuRow ReadGpu(const sim::Machine& machine, size_t index, const gpu::Catalogue& catalogue) {
  const gpu::Model& model = machine.model(index);
  GpuRow row{machine.kubelet().name(),
             static_cast<int>(index),
             ProductOf(machine, index, catalogue),
             model.slots(),
             {}};
  row.by_memory = model.counted();
  const std::vector<device::GpuInstance> instances = machine.Instances(index);
  row.sharing_mode = SharingModeOf(machine, index, instances);
  for (const device::GpuInstance& instance : instances) {
    SlotSpan span = SpanOf(model, instance);
    const auto* holder = machine.kubelet().Holder(instance.uuid);
    if (holder == nullptr) holder = machine.kubelet().ClaimHolder(instance.uuid);
    if (holder != nullptr) {
      span.pod = holder->pod == nullptr ? "(deleted)" : holder->pod->Key();
    }
    row.changing = row.changing || !instance.complete;
    row.spans.push_back(std::move(span));
  }
  if (row.by_memory) {
    LayOut(row.spans);
  } else {
    std::ranges::sort(row.spans, {}, &SlotSpan::start);
  }
  return row;
}

std::string Asks(const cluster::Pod& pod) {
  constexpr std::string_view kKind = "nvidia.com/mig-";  // or gpu-, gpu.
  std::string text;
  for (const auto& [name, quantity] : cluster::PodRequests(pod)) {
    const bool whole = name == cluster::kWholeGpuResource;
    if (!whole && !cluster::IsSliceResource(name)) continue;
    text += fmt::format("{}{}x{}", text.empty() ? "" : " ", quantity.Value(),
                        whole ? "gpu" : name.substr(kKind.size()));
  }
  for (const cluster::PodClaim& claim : pod.claims) {
    text += fmt::format("{}claim {}", text.empty() ? "" : " ",
                        claim.template_name.empty() ? claim.claim : claim.template_name);
  }
  return text;
}

// Prefers a reason about nodes that could serve the pod, if any: other nodes are irrelevant to it.
const planning::Reason& RelevantReason(const std::vector<planning::Reason>& reasons) {
  const auto relevant = std::ranges::find_if(reasons, [](const planning::Reason& reason) {
    return reason.code != scheduling::codes::kNoGpuForProfile &&
           reason.code != scheduling::codes::kNotPartitioned;
  });
  return relevant == reasons.end() ? reasons.front() : *relevant;
}

// Its scheduling gates; else the partitioner's reason and remedy if available, else the scheduler's
// reason.
WaitingRow Waiting(const cluster::Pod& pod, const controllers::Partitioner* partitioner, Time now) {
  WaitingRow row{pod.Key(), Asks(pod), "not looked at yet", now - pod.meta.created};
  if (scheduling::IsGated(pod)) {
    row.why = scheduling::SchedulingGated(pod).message;
    row.remedy = scheduling::LiftGates(pod).text;
    return row;
  }
  const cluster::Condition* scheduled = pod.FindCondition("PodScheduled");
  // The API server leaves that reason when the gates are gone.
  if (scheduled != nullptr && scheduled->reason != scheduling::codes::kSchedulingGated) {
    row.why = scheduled->message;
  }
  if (const cluster::Condition* scaling = pod.FindCondition(controllers::kScalingCondition)) {
    row.remedy = scaling->message;
  }
  if (partitioner == nullptr) return row;
  const auto verdict = partitioner->verdicts().find(row.pod);
  if (verdict == partitioner->verdicts().end() || verdict->second.placed ||
      verdict->second.reasons.empty()) {
    return row;
  }
  row.why = RelevantReason(verdict->second.reasons).message;
  if (row.remedy.empty()) row.remedy = verdict->second.remedy;
  return row;
}

DecisionRow RowOf(const telemetryserver::Story& story, Time started) {
  return {Time(std::chrono::milliseconds(story.at)) - started, story.sentence};
}

// Decisions of the partitioner that are no decision records: a plan without an answer, a repair.
bool HasNoRecord(const controllers::Decision& decision) {
  return !decision.note.empty() && decision.note != "applied" &&
         !decision.note.starts_with("partial: ");
}

DecisionRow RowOf(const controllers::Decision& decision, Time started) {
  return {decision.time - started, fmt::format("{}: {}", decision.node, decision.note)};
}

// The GPU resources of each quota, in the order of names.
std::vector<QuotaRow> Quotas(sim::World& world) {
  kube::Client client(world.api());
  const auto quotas = ListQuotas(client);
  if (!quotas.ok() || quotas->empty()) return {};
  const auto snapshot =
      cluster::ClusterSnapshot::Build(world.Nodes(), world.Pods(), world.catalogue());
  cluster::ClusterContext context;
  if (const auto claims = ListClaims(client); claims.ok()) {
    for (const auto& claim : *claims) context.device_claims.Set(claim->Key(), claim);
  }
  quota::Ledger ledger =
      quota::LedgerOf(*quotas, snapshot, world.Pods(), scheduling::WithClaims({}, context));
  const quota::Balance& balance = ledger.balance();
  std::vector<QuotaRow> rows;
  for (size_t account = 0; account < balance.size(); ++account) {
    const quota::Terms& terms = balance.terms(account);
    for (const auto& [id, min] : terms.min.entries()) {
      const std::string resource = cluster::ResourceName(id);
      if (resource.find('/') == std::string::npos) continue;  // cpu, memory
      const quota::Amount borrowed = balance.BorrowedBy(account, id);
      rows.push_back({terms.quota->meta.ns, resource.substr(resource.find('/') + 1),
                      quota::TextOf(id, balance.used(account).Get(id)), quota::TextOf(id, min),
                      borrowed > 0 ? quota::TextOf(id, borrowed) : ""});
    }
  }
  std::ranges::sort(rows, {}, &QuotaRow::name);
  return rows;
}

std::vector<PoolRow> Pools(sim::World& world) {
  std::map<std::string, int> going;
  const auto nodes = world.Nodes();
  for (const auto& node : nodes) {
    const auto pool = node->meta.labels.find(sim::kPoolLabel);
    const bool goes = node->meta.annotations.contains(controllers::kRemoval);
    if (goes && pool != node->meta.labels.end()) ++going[pool->second];
  }
  std::vector<PoolRow> rows;
  const std::vector<sim::PoolState> states = world.infrastructure().States();
  for (const sim::PoolState& pool : states) {
    rows.push_back(
        {pool.name, pool.nodes, pool.coming, going[pool.name], pool.min, pool.max, pool.cost});
  }
  return rows;
}

}  // namespace

ViewModel Observe(sim::World& world, Time started, std::span<const Json> decisions) {
  ViewModel model;
  model.elapsed = world.Now() - started;
  for (const auto& [name, machine] : world.machines()) {
    for (size_t i = 0; machine->gpus() != nullptr && i < machine->gpu_count(); ++i) {
      model.gpus.push_back(ReadGpu(*machine, i, world.catalogue()));
    }
  }
  std::ranges::stable_sort(model.gpus, NaturallyLess(), &GpuRow::node);
  const controllers::Partitioner* partitioner = world.controllers().partitioner();
  for (const auto& pod : world.Pods()) {
    if (pod->Finished()) {
      ++model.finished;
    } else if (pod->phase == "Running") {
      ++model.running;
    } else if (pod->node_name.empty()) {
      model.waiting.push_back(Waiting(*pod, partitioner, world.Now()));
    }
  }
  std::sort(model.waiting.begin(), model.waiting.end(),
            [](const WaitingRow& a, const WaitingRow& b) {
              return a.age != b.age ? a.age > b.age : a.pod < b.pod;
            });
  for (const telemetryserver::Story& story : telemetryserver::StoriesOf(decisions)) {
    model.decisions.push_back(RowOf(story, started));
  }
  if (partitioner != nullptr) {
    for (const controllers::Decision& decision : partitioner->decisions()) {
      if (HasNoRecord(decision)) model.decisions.push_back(RowOf(decision, started));
    }
  }
  std::ranges::stable_sort(model.decisions, {}, &DecisionRow::at);
  model.pools = Pools(world);
  model.quotas = Quotas(world);
  return model;
}

}  // namespace nos::cmd
