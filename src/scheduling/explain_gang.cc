#include "scheduling/explain_gang.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

#include "cluster/cut.h"
#include "scheduling/gang_domains.h"

namespace nos::scheduling {
namespace {

using cluster::ClusterSnapshot;
using SharedPod = std::shared_ptr<const cluster::Pod>;

constexpr size_t kMostDomains = 16;  // that are tried

void BindWithCut(const Framework& framework, const SharedPod& pod, const cluster::NodeInfo& node,
                 ClusterSnapshot& snapshot) {
  const std::string name = node.node->meta.name;
  const cluster::ResourceVector requests = cluster::RequestsOf(*pod);
  auto holds = std::make_shared<cluster::Pod>(*pod);
  holds->priority = std::numeric_limits<int32_t>::max();  // no member is in another's way
  if (framework.gpus_cut() == GpusCut::kHere && node.gpus.managed &&
      !cluster::HasFreeInstances(node, requests)) {
    holds->promised = cluster::FindCut(node, requests).value_or(holds->promised);
  }
  (void)snapshot.Bind(std::move(holds), name);  // it is there
}

struct Trial {
  size_t found = 0;
  ClusterSnapshot at_turn;  // of the pod that is asked about
  std::vector<SharedPod> refused;
  Diagnosis why;           // of the first of them
  ClusterSnapshot beside;  // all that found a node
};

const Framework& FrameworkFor(const cluster::Pod& pod, const ExplainInput& input,
                              const Together& together) {
  return together.frameworks != nullptr ? together.frameworks->For(pod) : input.framework;
}

bool IsEnough(const Trial& trial, const Together& together) {
  return together.placed + trial.found >= together.least;
}

// The best node of these that fits; null: none does.
const cluster::NodeInfo* Choose(const Framework& framework, const cluster::Pod& pod,
                                const ClusterSnapshot& snapshot, const CycleState& learnt,
                                std::span<const size_t> among) {
  const Cycle cycle = framework.PreFilter(pod, snapshot);
  std::vector<const cluster::NodeInfo*> fit;
  for (const size_t n : among) {
    const cluster::NodeInfo& node = snapshot.node(n);
    if (framework.Filter(cycle, pod, node).fits()) fit.push_back(&node);
  }
  if (fit.empty()) return nullptr;
  const std::vector<int64_t> scores = framework.Score(cycle, pod, snapshot, fit, learnt);
  return fit[static_cast<size_t>(std::ranges::max_element(scores) - scores.begin())];
}

// One after the other; the first that is tied to others goes to these nodes, if there are any. Who
// has to be near others is tried again when those have a node.
Trial Try(const ExplainInput& input, const Together& together, const CycleState& learnt,
          std::span<const size_t> domain) {
  Trial trial{0, input.snapshot, {}, {}, input.snapshot};
  const std::string asked = input.pod.Key();
  const bool near = HaveToBeNear(together.waiting);
  bool begun = domain.empty();
  std::vector<SharedPod> left = together.waiting;
  for (bool again = true; again;) {
    const size_t before = trial.found;
    trial.refused.clear();
    for (const SharedPod& member : left) {
      if (member->Key() == asked) trial.at_turn = trial.beside;
      const Framework& framework = FrameworkFor(*member, input, together);
      Decision decision;
      if (!begun && IsTied(*member, together.waiting)) {
        decision.node = Choose(framework, *member, trial.beside, learnt, domain);
        begun = decision.node != nullptr;
      } else {
        decision = framework.Schedule(*member, trial.beside, learnt);
      }
      if (decision.node != nullptr) {
        ++trial.found;
        BindWithCut(framework, member, *decision.node, trial.beside);
        continue;
      }
      if (trial.refused.empty()) trial.why = std::move(decision.diagnosis);
      trial.refused.push_back(member);
    }
    left = trial.refused;
    again = near && trial.found > before && !left.empty();
  }
  return trial;
}

// As they come, and if that does not do, in each domain in which they may begin. The try by which
// most find a node.
Trial TryAll(const ExplainInput& input, const Together& together) {
  const CycleState learnt = input.framework.Learn(input.snapshot, together.waiting);
  Trial best = Try(input, together, learnt, {});
  if (IsEnough(best, together) || !HaveToBeNear(together.waiting)) return best;
  std::vector<const cluster::NodeInfo*> nodes;
  for (size_t n = 0; n < input.snapshot.size(); ++n) nodes.push_back(&input.snapshot.node(n));
  std::vector<std::vector<size_t>> domains = GangDomains(together.waiting, nodes);
  if (domains.size() > kMostDomains) domains.resize(kMostDomains);
  for (const std::vector<size_t>& domain : domains) {
    Trial trial = Try(input, together, learnt, domain);
    if (trial.found > best.found) best = std::move(trial);
    if (IsEnough(best, together)) break;
  }
  return best;
}

}  // namespace

Explanation ExplainTogether(const ExplainInput& input, const Together& together) {
  const size_t there = together.placed + together.waiting.size();
  ExplainInput next = input;
  if (there < together.least) {
    next.gang = fmt::format("{}: {} of the {} pods that are placed together are there",
                            together.name, there, together.least);
    return Explain(next);
  }
  const Trial trial = TryAll(input, together);
  const size_t found = together.placed + trial.found;
  if (IsEnough(trial, together) || trial.refused.empty()) {
    return Explain({input.framework, input.cutting, trial.at_turn, input.pod, input.preemption, "",
                    false, input.reader});
  }
  const cluster::Pod& refused = *trial.refused.front();
  const std::string why =
      fmt::format("{}: {} of its pods find a node together, and {} must; {}: {}", together.name,
                  found, together.least, refused.Key(), trial.why.ToString());
  Explanation explanation =
      Explain({FrameworkFor(refused, input, together), input.cutting, trial.beside, refused,
               input.preemption, why, true, input.reader});
  explanation.pod = input.pod.Key();
  explanation.priority = input.pod.priority;
  if (refused.Key() != explanation.pod) {
    explanation.remedy = fmt::format("for {}: {}", refused.Key(), explanation.remedy);
  }
  return explanation;
}

}  // namespace nos::scheduling
