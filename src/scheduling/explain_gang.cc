#include "scheduling/explain_gang.h"

#include <fmt/core.h>

#include <limits>
#include <utility>

#include "cluster/cut.h"

namespace nos::scheduling {
namespace {

using cluster::ClusterSnapshot;
using SharedPod = std::shared_ptr<const cluster::Pod>;

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

Trial Try(const ExplainInput& input, const Together& together) {
  Trial trial{0, input.snapshot, {}, {}, input.snapshot};
  const CycleState learnt = input.framework.Learn(input.snapshot, together.waiting);
  const std::string asked = input.pod.Key();
  for (const SharedPod& member : together.waiting) {
    if (member->Key() == asked) trial.at_turn = trial.beside;
    const Framework& framework = FrameworkFor(*member, input, together);
    Decision decision = framework.Schedule(*member, trial.beside, learnt);
    if (decision.node != nullptr) {
      ++trial.found;
      BindWithCut(framework, member, *decision.node, trial.beside);
      continue;
    }
    if (trial.refused.empty()) trial.why = std::move(decision.diagnosis);
    trial.refused.push_back(member);
  }
  return trial;
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
  const Trial trial = Try(input, together);
  const size_t found = together.placed + trial.found;
  if (found >= together.least || trial.refused.empty()) {
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
