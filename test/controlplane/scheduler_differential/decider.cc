#include "scheduler_differential/decider.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/file.h"
#include "codec/yaml.h"
#include "dra/cel_expressions.h"
#include "dra/context.h"
#include "dra/device_index.h"
#include "kube/cache.h"
#include "scheduling/diagnosis.h"
#include "scheduling/framework.h"
#include "scheduling/pod_state.h"
#include "scheduling/reasons.h"

namespace nos::differential {
namespace {

using cluster::ClusterSnapshot;
using cluster::NodeInfo;
using cluster::Pod;
using scheduling::Framework;

ClusterSnapshot SnapshotOf(const Picture& picture) {
  ClusterSnapshot snapshot =
      ClusterSnapshot::Build(picture.nodes, picture.pods, gpu::Catalogue::Builtin());
  snapshot.ChangeContext() = picture.context;
  return snapshot;
}

}  // namespace

Decider::Decider(std::vector<scheduling::Profile> profiles)
    : profiles_(std::move(profiles)),
      engine_(std::make_unique<scheduling::Engine>(gpu::Catalogue::Builtin())) {}

Result<Decider> Decider::Of(const std::string& path) {
  NOS_ASSIGN(const std::string text, ReadFile(path));
  NOS_ASSIGN(const std::vector<Json> documents, ParseYaml(text));
  if (documents.size() != 1) return Invalid(path + ": one document is expected");
  NOS_ASSIGN(scheduling::Configuration configuration,
             scheduling::ReadConfiguration(documents.front()));
  return Decider(std::move(configuration.profiles));
}

const Framework& Decider::FrameworkOf(const Pod& pod) const {
  const auto found =
      std::ranges::find(profiles_, pod.scheduler_name, &scheduling::Profile::scheduler_name);
  return *(found == profiles_.end() ? profiles_.front() : *found).framework;
}

void Decider::FollowDevices() {
  devices_ = true;
  engine_->FollowDevices(std::make_shared<dra::DeviceIndex>(
      dra::Features::All(), std::make_shared<const dra::CelExpressions>()));
}

// Devices and their claims change one by one, as a watch shows them.
void Decider::FollowContext(const Picture& picture) {
  const auto replace = [&](cluster::ClusterContext& context) { context = picture.context; };
  if (!devices_) return engine_->ChangeContext(replace);
  std::map<std::string, std::string> others, devices;
  for (const Json& object : picture.objects) {
    const std::string_view kind = FindString(object, "kind");
    if (kind == "Node" || kind == "Pod") continue;
    const std::string key = kube::KeyOf(FindString(object, "metadata", "namespace"),
                                        FindString(object, "metadata", "name"));
    (dra::IsDeviceKind(kind) ? devices : others)[fmt::format("{} {}", kind, key)] =
        fmt::format("{} {}", FindString(object, "metadata", "uid"),
                    FindString(object, "metadata", "resourceVersion"));
  }
  if (others != known_context_) engine_->ChangeContext(replace);
  std::map<std::string, std::string> all = known_devices_;
  all.insert(devices.begin(), devices.end());
  for (const auto& [name, version] : all) {
    const auto before = known_devices_.find(name), after = devices.find(name);
    const bool same =
        before != known_devices_.end() && after != devices.end() && before->second == after->second;
    if (same) continue;
    const std::string kind = name.substr(0, name.find(' ')), key = name.substr(kind.size() + 1);
    dra::ForEachDeviceKind([&](const cluster::ContextKind& known, auto, auto table) {
      if (known.kind != kind || (known.kind == dra::kTaintRuleKind && known.version != "v1"))
        return;
      const auto change = [&](cluster::ClusterContext& context) {
        (context.*table).Set(key, (picture.context.*table).Share(key));
      };
      engine_->ChangeContext(change, known.kind, key);
    });
  }
  known_context_ = std::move(others);
  known_devices_ = std::move(devices);
}

// Applies the changes since the last snapshot to the engine.
void Decider::Follow(const Picture& picture) {
  FollowContext(picture);
  for (const auto& pod : promised_) engine_->Nominate(pod, "");
  promised_.clear();
  std::map<std::string, std::string> nodes, pods;
  for (const auto& node : picture.nodes) {
    const std::string& name = node->meta.name;
    nodes[name] = node->meta.uid + node->meta.resource_version;
    if (const auto known = known_nodes_.find(name);
        known == known_nodes_.end() || known->second != nodes[name]) {
      engine_->SetNode(node);
    }
  }
  for (const auto& pod : picture.pods) {
    const std::string key = pod->Key();
    pods[key] = pod->meta.uid + pod->meta.resource_version;
    const auto known = known_pods_.find(key);
    if (known == known_pods_.end() || known->second != pods[key]) engine_->SetPod(pod);
    if (!pod->node_name.empty() || pod->nominated_node.empty()) continue;
    promised_.push_back(pod);
    engine_->Nominate(pod, pod->nominated_node);
  }
  for (const auto& [key, version] : known_pods_) {
    if (!pods.contains(key)) engine_->RemovePod(key);
  }
  for (const auto& [name, version] : known_nodes_) {
    if (!nodes.contains(name)) engine_->RemoveNode(name);
  }
  known_nodes_ = std::move(nodes);
  known_pods_ = std::move(pods);
}

void Decider::Score(const scheduling::Cycle& cycle, const Pod& pod, const ClusterSnapshot& snapshot,
                    Opinion& opinion) const {
  const Framework& framework = FrameworkOf(pod);
  std::vector<const NodeInfo*> feasible;
  for (size_t i = 0; i < snapshot.size(); ++i) {
    const NodeInfo& node = snapshot.node(i);
    if (opinion.nodes.at(node.node->meta.name).verdict.fits()) feasible.push_back(&node);
  }
  scheduling::CycleState state = cycle.state;
  const std::shared_ptr<const Pod> waiting[] = {std::make_shared<const Pod>(pod)};
  state.Merge(framework.Precompute(snapshot, waiting));
  for (const auto& [plugin, weight] : framework.scorers()) {
    if (!plugin->PreScore(pod, snapshot, feasible, state)) continue;
    std::vector<int64_t> raw;
    raw.reserve(feasible.size());
    for (const NodeInfo* node : feasible) raw.push_back(plugin->Score(state, pod, *node));
    int64_t lowest = std::numeric_limits<int64_t>::max(), highest = scheduling::kUnscored;
    for (const int64_t score : raw) {
      highest = std::max(highest, score);
      if (score != scheduling::kUnscored) lowest = std::min(lowest, score);
    }
    for (size_t i = 0; i < raw.size(); ++i) {
      Opinion::Node& node = opinion.nodes.at(feasible[i]->node->meta.name);
      const int64_t score = raw[i] == scheduling::kUnscored
                                ? 0
                                : weight * plugin->Normalized(raw[i], lowest, highest);
      node.scores[plugin->Name()] = score;
      node.total += score;
    }
  }
  opinion.feasible = static_cast<int>(feasible.size());
  for (const auto& [name, node] : opinion.nodes) {
    if (!node.verdict.fits()) continue;
    if (opinion.first_best.empty() || node.total > opinion.best) {
      opinion.best = node.total;
      opinion.first_best = name;
    }
  }
}

std::string Decider::Contradiction(const ClusterSnapshot& snapshot,
                                   const std::shared_ptr<const Pod>& pod, const Opinion& opinion) {
  // Texts and scores differ beside nominated pods: docs/scheduler-differences.md.
  const bool beside = !promised_.empty();
  const bool same_texts = !beside && !opinion.all_filters;
  const auto check = [&](const char* who, const scheduling::Decision& decision) -> std::string {
    if ((decision.node != nullptr) != (opinion.feasible > 0)) {
      return fmt::format("{} decides for {}", who,
                         decision.node == nullptr ? "no node" : decision.node->node->meta.name);
    }
    if (decision.node == nullptr) {
      const std::string text = decision.diagnosis.ToString();
      if (!same_texts || text == opinion.diagnosis.ToString()) return "";
      return fmt::format("{} says: {}", who, text);
    }
    const std::string& name = decision.node->node->meta.name;
    const Opinion::Node& node = opinion.nodes.at(name);
    const bool same = node.verdict.fits() &&
                      (beside || (decision.score == opinion.best && node.total == opinion.best));
    return same ? "" : fmt::format("{} takes {} for {}", who, name, decision.score);
  };
  const Framework& framework = FrameworkOf(*pod);
  if (!beside) {  // frameworks do not know nominations
    std::string contradiction = check("the framework", framework.Schedule(*pod, snapshot));
    if (!contradiction.empty()) return contradiction;
  }
  return check("the engine", engine_->Schedule(framework, pod));
}

Opinion Decider::Ask(const Picture& picture, const std::shared_ptr<const Pod>& pod) {
  Opinion opinion;
  opinion.pod_level = !pod->requests.empty() || !pod->limits.empty();
  const Framework& framework = FrameworkOf(*pod);
  for (const scheduling::PreEnqueuePlugin* gate : framework.gates()) {
    const scheduling::Verdict verdict = gate->PreEnqueue(*pod);
    if (!verdict.fits()) opinion.gate = verdict.message;
  }
  Follow(picture);
  const ClusterSnapshot snapshot = SnapshotOf(picture);
  const scheduling::Promises promises = engine_->PromisesFor(*pod);
  scheduling::Cycle cycle = framework.PreFilter(*pod, snapshot);
  opinion.refusal = cycle.verdict;
  // nos asks only the node that has the pod's devices; kube-scheduler asks all of them.
  if (cycle.nodes && cycle.elsewhere.code == scheduling::codes::kDevicesElsewhere) {
    cycle.nodes.reset();
    opinion.all_filters = true;
  }
  scheduling::DiagnosisBuilder builder;
  for (size_t i = 0; i < snapshot.size(); ++i) {
    const NodeInfo& node = snapshot.node(i);
    scheduling::Verdict verdict = FilterBeside(framework, snapshot, cycle, *pod, node, promises);
    builder.Add(verdict);
    opinion.nodes[node.node->meta.name] = {std::move(verdict)};
  }
  opinion.diagnosis =
      cycle.verdict.fits() ? std::move(builder).Finish() : framework.Diagnose(*pod, snapshot);
  Score(cycle, *pod, snapshot, opinion);
  opinion.contradiction = Contradiction(snapshot, pod, opinion);
  if (opinion.feasible > 0) return opinion;
  opinion.why_not_preempt = WhyNotPreempt(framework, snapshot, *pod);
  if (!opinion.why_not_preempt.empty()) return opinion;
  opinion.candidates = PreemptionCandidates(framework, snapshot, *pod, {}, nullptr, promises);
  opinion.preemption = FindPreemption(framework, snapshot, *pod, {}, nullptr, promises);
  return opinion;
}

std::string Describe(const Opinion& opinion) {
  std::string text;
  if (!opinion.gate.empty()) text += fmt::format("  gate: {}\n", opinion.gate);
  if (!opinion.contradiction.empty()) text += fmt::format("  but {}\n", opinion.contradiction);
  for (const auto& [name, node] : opinion.nodes) {
    if (node.verdict.fits()) {
      text += fmt::format("  {} {}:", name, node.total);
      for (const auto& [plugin, score] : node.scores) text += fmt::format(" {}={}", plugin, score);
    } else {
      const bool helpless = node.verdict.kind == scheduling::Verdict::Kind::kUnresolvable;
      text += fmt::format("  {} {}: {}", name, helpless ? "never" : "no", node.verdict.message);
      for (const auto& reason : node.verdict.more) text += ", " + reason.message;
    }
    text += "\n";
  }
  if (opinion.feasible == 0) text += fmt::format("  {}\n", opinion.diagnosis.ToString());
  if (!opinion.why_not_preempt.empty()) text += fmt::format("  {}\n", opinion.why_not_preempt);
  for (const scheduling::Preemption& candidate : opinion.candidates) {
    const bool best = opinion.preemption && opinion.preemption->node == candidate.node;
    text += fmt::format("  {} {} with {} violations of", best ? "preempts on" : "might preempt on",
                        candidate.node, candidate.violations);
    for (const auto& victim : candidate.victims) {
      text += fmt::format(" {}({})", victim->Key(), victim->priority);
    }
    text += "\n";
  }
  return text;
}

}  // namespace nos::differential
