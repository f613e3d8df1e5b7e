#include "planning/never.h"

#include <optional>
#include <utility>

#include "planning/explanation/explain.h"
#include "planning/explanation/shortfalls.h"
#include "planning/explanation/wording.h"
#include "planning/translation/translate.h"

namespace nos::planning {
namespace {

void Replace(Explanation why, PodOutcome& outcome) {
  outcome.reasons.insert(outcome.reasons.begin(), std::make_move_iterator(why.reasons.begin()),
                         std::make_move_iterator(why.reasons.end()));
  outcome.remedy_code = std::move(why.remedy.code);
  outcome.remedy = std::move(why.remedy.text);
}

// Nullopt: some node could serve the class.
std::optional<Explanation> WhyNever(const Translation& t, const PodClass& cls) {
  const scheduling::SliceDemand demand = DemandOf(t, cls);
  std::optional<scheduling::Remedy> impossible = ForImpossible(t, cls, demand);
  if (!impossible) return std::nullopt;
  Explanation why{{}, *std::move(impossible)};
  if (auto reason = demand.NoModelHasProfile()) why.reasons.push_back(*std::move(reason));
  return why;
}

}  // namespace

void ExplainNever(const cluster::ClusterSnapshot& snapshot,
                  const scheduling::FrameworkChoice& frameworks,
                  std::vector<PodOutcome>& outcomes) {
  std::vector<std::shared_ptr<const cluster::Pod>> pods;
  for (const PodOutcome& outcome : outcomes) pods.push_back(outcome.pod);
  if (pods.empty()) return;
  const PlanOptions options;
  const Translation t = Translate(snapshot, pods, frameworks, options);
  std::vector<std::optional<Explanation>> by_class;
  for (const PodClass& cls : t.problem.classes) by_class.push_back(WhyNever(t, cls));
  for (size_t i = 0; i < outcomes.size(); ++i) {
    if (t.class_of[i] >= 0) {
      if (const auto& why = by_class[t.class_of[i]]) Replace(*why, outcomes[i]);
      continue;
    }
    Explanation why = NotPlanned(*outcomes[i].pod, nullptr);
    if (why.reasons.front().code != scheduling::codes::kSeveralShares) continue;
    Replace(std::move(why), outcomes[i]);
  }
}

}  // namespace nos::planning
