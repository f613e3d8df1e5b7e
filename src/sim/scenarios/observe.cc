#include "sim/scenarios/observe.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "controllers/relocations.h"
#include "planning/names.h"

namespace nos::sim {
namespace {

void SortByStart(SeenLayout& layout) {
  std::sort(layout.begin(), layout.end(),
            [](const SeenInstance& a, const SeenInstance& b) { return a.start < b.start; });
}

std::string Devices(const planning::PodOutcome& pod) {
  std::string out;
  for (const auto& device : pod.devices) {
    out += fmt::format("{}{}@{} of GPU {}{}", out.empty() ? "" : ", ", device.profile,
                       device.placement.start, device.gpu, device.existing ? "" : " (new)");
  }
  return out;
}

// True for pods that the scenario did not create: holders of used instances and placeholders.
bool IsHolder(const cluster::Pod& pod) {
  return pod.meta.name.starts_with("used-") || controllers::IsPlaceholder(pod);
}

// The number of pods in this phase; "Pending" counts only unbound pods.
int CountPhase(World& world, std::string_view phase) {
  int count = 0;
  for (const auto& pod : world.Pods()) {
    const bool counts = pod->phase == phase && (phase != "Pending" || pod->node_name.empty());
    count += counts && !IsHolder(*pod) ? 1 : 0;
  }
  return count;
}

int CountInstances(const World& world, std::string_view state) {
  int count = 0;
  for (const auto& [gpu, layout] : TrueLayouts(world)) {
    for (const SeenInstance& instance : layout) count += instance.state == state ? 1 : 0;
  }
  return count;
}

// `what`: "pool a100 nodes". nullopt if there is no such pool.
std::optional<int> CountOfPool(const std::string& what, World& world) {
  const std::vector<std::string_view> words = Split(what, ' ');
  const std::vector<PoolState> states = world.infrastructure().States();
  const auto state = std::ranges::find(states, words[1], &PoolState::name);
  if (state == states.end()) return std::nullopt;
  return words[2] == "nodes" ? state->nodes : words[2] == "coming" ? state->coming : state->wanted;
}

int CountPlaceholders(World& world) {
  const auto pods = world.Pods();
  return static_cast<int>(std::ranges::count_if(
      pods, [](const auto& pod) { return controllers::IsPlaceholder(*pod); }));
}

// The number of nodes that are cordoned or marked for removal.
int CountLeaving(World& world) {
  const auto nodes = world.Nodes();
  return static_cast<int>(std::ranges::count_if(nodes, [](const auto& node) {
    return node->unschedulable || node->meta.annotations.contains(controllers::kRemoval);
  }));
}

}  // namespace

std::map<GpuId, SeenLayout> TrueLayouts(const World& world) {
  std::map<GpuId, SeenLayout> layouts;
  for (const auto& [name, machine] : world.machines()) {
    for (size_t i = 0; machine->gpus() != nullptr && i < machine->gpu_count(); ++i) {
      const int gpu = static_cast<int>(i);
      SeenLayout& layout = layouts[{name, gpu}];
      for (const auto& instance : machine->Instances(i)) {
        const bool used = machine->kubelet().Holder(instance.uuid) != nullptr ||
                          (machine->driver() != nullptr && machine->driver()->Holds(instance.uuid));
        layout.push_back({instance.profile, instance.start, used ? "used" : "free"});
      }
      SortByStart(layout);
    }
  }
  return layouts;
}

std::map<GpuId, SeenLayout> PlannedLayouts(const World& world, const planning::Plan& plan) {
  std::map<GpuId, SeenLayout> layouts = TrueLayouts(world);
  for (const auto& node : plan.nodes) {
    for (const auto& gpu : node.gpus) {
      SeenLayout& layout = layouts[{node.name, gpu.index}];
      layout.clear();
      for (const auto& instance : gpu.layout) {
        layout.push_back({gpu.model->profile(instance.placement.profile).name,
                          instance.placement.start, std::string(planning::NameOf(instance.state))});
      }
      SortByStart(layout);
    }
  }
  return layouts;
}

std::string ToString(const SeenLayout& layout) {
  std::string out;
  for (const SeenInstance& instance : layout) {
    out += fmt::format("{}{}@{} {}", out.empty() ? "" : ", ", instance.profile, instance.start,
                       instance.state);
  }
  return out.empty() ? "empty" : out;
}

std::string ToString(const ExpectedLayout& layout) {
  std::string out;
  for (const ExpectedInstance& instance : layout) {
    out += (out.empty() ? "" : ", ") + instance.profile;
    if (instance.start) out += fmt::format("@{}", *instance.start);
    if (!instance.state.empty()) out += " " + instance.state;
  }
  return out.empty() ? "empty" : out;
}

bool Matches(const ExpectedLayout& expected, const SeenLayout& seen) {
  if (expected.size() != seen.size()) return false;
  // The most specific expectations choose first.
  ExpectedLayout order = expected;
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    const auto particular = [](const ExpectedInstance& i) {
      return (i.start ? 2 : 0) + (i.state.empty() ? 0 : 1);
    };
    return particular(a) > particular(b);
  });
  std::vector<bool> taken(seen.size(), false);
  for (const ExpectedInstance& wanted : order) {
    const auto match = [&](size_t i) {
      return !taken[i] && seen[i].profile == wanted.profile &&
             (!wanted.start || *wanted.start == seen[i].start) &&
             (wanted.state.empty() || wanted.state == seen[i].state);
    };
    size_t i = 0;
    while (i < seen.size() && !match(i)) ++i;
    if (i == seen.size()) return false;
    taken[i] = true;
  }
  return true;
}

SeenPod PlannedPod(const planning::Plan& plan, const std::string& name) {
  for (const auto& pod : plan.pods) {
    if (pod.pod->meta.name != name) continue;
    const std::string outcome(planning::NameOfOutcome(pod));
    if (pod.placed) {
      return {outcome, pod.node, {}, fmt::format("placed on {} ({})", pod.node, Devices(pod))};
    }
    SeenPod seen{outcome, "", {}, outcome};
    for (const auto& reason : pod.reasons) {
      seen.codes.push_back(reason.code);
      seen.text += fmt::format("; {}: {}", reason.code, reason.message);
    }
    return seen;
  }
  return {"", "", {}, "not asked for in the plan: no such pod was pending"};
}

SeenPod ActualPod(World& world, const std::string& name) {
  const auto pod = world.FindPod(name);
  if (pod == nullptr) return {"gone", "", {}, "gone: there is no such pod"};
  const std::map<std::string_view, std::string> outcomes = {
      {"Running", "running"}, {"Succeeded", "succeeded"}, {"Failed", "failed"}};
  const auto known = outcomes.find(pod->phase);
  SeenPod seen{"waiting", pod->node_name, {}, ""};
  if (known != outcomes.end()) {
    seen.outcome = known->second;
  } else if (!pod->node_name.empty()) {
    seen.outcome = "starting";
  }
  seen.text = seen.outcome + (seen.node.empty() ? "" : " on " + seen.node);
  if (!pod->reason.empty()) seen.codes.push_back(pod->reason);
  for (const auto& condition : pod->conditions) {
    if (condition.status == "True" || condition.reason.empty()) continue;
    seen.codes.push_back(condition.reason);
    seen.text += fmt::format("; {}: {}", condition.reason, condition.message);
  }
  return seen;
}

std::optional<int> Count(const std::string& what, const std::optional<planning::Plan>& plan,
                         World& world) {
  if (what == "running") return CountPhase(world, "Running");
  if (what == "succeeded") return CountPhase(world, "Succeeded");
  if (what == "failed") return CountPhase(world, "Failed");
  if (what == "waiting") return CountPhase(world, "Pending");
  if (what == "recreated") return world.recreated();
  if (what == "preempted") return world.checks().evictions().evictions();
  if (what == "evictions") return world.checks().moves().evictions();
  if (what == "placeholders") return CountPlaceholders(world);
  if (what == "devices") return world.checks().devices().allocated();
  if (what == "leaving") return CountLeaving(world);
  if (what.starts_with("pool ")) return CountOfPool(what, world);
  if (what == "used" || what == "free") return CountInstances(world, what);
  if (!plan) return std::nullopt;
  if (what == "placed") return plan->placed;
  if (what == "pending") return static_cast<int>(plan->pods.size()) - plan->placed;
  if (what == "bound") return plan->upper_bound;
  if (what == "created") return plan->created;
  if (what == "destroyed") return plan->destroyed;
  if (what == "gpus-touched") return plan->gpus_touched;
  return plan->nodes_touched;
}

}  // namespace nos::sim
