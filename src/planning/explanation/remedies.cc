#include "planning/remedies.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "scheduling/explain.h"
#include "scheduling/framework.h"
#include "scheduling/pod_kind.h"
#include "scheduling/pod_names.h"
#include "scheduling/pod_state.h"

namespace nos::planning {

using scheduling::Remedy;

namespace {

constexpr int64_t kMaxNodes = 200'000, kMaxNodesLate = 4000;  // visited by all searches

// The pod as it is when the plan has been carried out.
std::shared_ptr<const cluster::Pod> Placed(const PodOutcome& outcome) {
  if (outcome.devices.empty()) return outcome.pod;
  auto pod = std::make_shared<cluster::Pod>(*outcome.pod);
  pod->promised.clear();
  for (const AssignedDevice& device : outcome.devices) {
    pod->promised.push_back({device.gpu, device.placement, device.model});
  }
  return pod;
}

}  // namespace

struct RemedySearch::Group {
  scheduling::Together together;
  std::string problem;  // as in Gang
};

RemedySearch::RemedySearch(cluster::ClusterSnapshot snapshot, const Plan& plan,
                           const std::vector<Gang>& gangs, scheduling::FrameworkChoice frameworks,
                           quota::Balance quotas)
    : after_(std::move(snapshot)),
      kept_(plan.kept),
      frameworks_(std::move(frameworks)),
      quotas_(std::move(quotas)),
      partitioning_(std::make_unique<const scheduling::Framework>(
          scheduling::Framework::Default(scheduling::PartitionedBy::kScheduler))) {
  for (const PodOutcome& outcome : plan.pods) {
    if (outcome.placed) (void)after_.Bind(Placed(outcome), outcome.node);  // the node exists
  }
  for (const Gang& gang : gangs) {
    Group group{{
                    gang.name,
                    static_cast<size_t>(std::max(gang.least, 0)),
                    static_cast<size_t>(gang.placed),
                    {},
                },
                gang.problem};
    for (const int member : gang.members) {
      const PodOutcome& outcome = plan.pods[static_cast<size_t>(member)];
      group_of_[outcome.pod->Key()] = groups_.size();
      if (outcome.placed) {
        ++group.together.placed;
      } else if (scheduling::IsSchedulable(*outcome.pod)) {
        group.together.waiting.push_back(outcome.pod);
      }
    }
    groups_.push_back(std::move(group));
  }
}

RemedySearch::~RemedySearch() = default;

const RemedySearch::Group* RemedySearch::GroupOf(const cluster::Pod& pod) const {
  const auto found = group_of_.find(pod.Key());
  return found == group_of_.end() ? nullptr : &groups_[found->second];
}

std::string RemedySearch::KindOf(const cluster::Pod& pod) const {
  const Group* group = GroupOf(pod);
  return fmt::format("{} {} {}", pod.priority, group == nullptr ? "" : group->together.name,
                     scheduling::KindOf(pod));
}

std::optional<Remedy> RemedySearch::FindKnown(const cluster::Pod& pod) const {
  const auto known = by_kind_.find(KindOf(pod));
  return known == by_kind_.end() ? std::nullopt : std::optional(known->second);
}

Remedy RemedySearch::Find(const cluster::Pod& pod) {
  const auto [known, fresh] = by_kind_.try_emplace(KindOf(pod));
  if (fresh) known->second = Search(pod);
  return known->second;
}

Remedy RemedySearch::Search(const cluster::Pod& pod) {
  const Group* group = GroupOf(pod);
  const bool together =
      group != nullptr && group->problem.empty() && group->together.placed < group->together.least;
  // The members of a gang are tried beside each other, each with the GPUs partitioned for it.
  scheduling::ExplainInput input{together ? *partitioning_ : frameworks_.For(pod), *partitioning_,
                                 after_, pod};
  input.balance = &quotas_;
  input.evicts = false;
  if (group != nullptr && !group->problem.empty()) {
    input.gang = fmt::format("{}: {}", group->together.name, group->problem);
  }
  const size_t searched = together ? group->together.waiting.size() + 1 : 1;
  visited_ += static_cast<int64_t>(after_.size() * searched);
  const scheduling::Explanation why =
      together ? scheduling::ExplainTogether(input, group->together) : scheduling::Explain(input);
  if (why.place) return HasRoomOn(why.place->node);
  if (why.remedy_code == scheduling::remedies::kPartitionGpus) return HasRoomOn(why.nearest->node);
  return {why.remedy_code, why.remedy};
}

// The plan leaves the pod pending although a node has room.
Remedy RemedySearch::HasRoomOn(const std::string& node) const {
  const auto kept = std::ranges::find(kept_, node, &KeptSlots::node);
  if (kept != kept_.end()) {
    return {scheduling::remedies::kWaitForReservation,
            fmt::format("wait until {} is served: room on node {} is kept for it",
                        scheduling::PodText(kept->pod), node)};
  }
  return {scheduling::remedies::kRaisePlanTimeout,
          fmt::format("raise planTimeoutSeconds of the partitioner: node {} has room", node)};
}

void AddRemedies(const cluster::ClusterSnapshot& snapshot, const std::vector<Gang>& gangs,
                 const scheduling::FrameworkChoice& frameworks, const quota::Balance& quotas,
                 const std::function<bool()>& out_of_time, Plan& plan) {
  std::vector<PodOutcome*> without;
  for (PodOutcome& outcome : plan.pods) {
    const bool pending = !outcome.placed && outcome.remedy.empty();
    if (pending && scheduling::IsPending(*outcome.pod)) without.push_back(&outcome);
  }
  if (without.empty()) return;
  std::ranges::stable_sort(without, std::ranges::greater(),
                           [](const PodOutcome* outcome) { return outcome->pod->priority; });
  RemedySearch search(snapshot, plan, gangs, frameworks, quotas);
  for (PodOutcome* outcome : without) {
    const bool late = out_of_time && out_of_time();
    const bool may_search = search.visited() < (late ? kMaxNodesLate : kMaxNodes);
    const auto remedy =
        may_search ? std::optional(search.Find(*outcome->pod)) : search.FindKnown(*outcome->pod);
    if (!remedy) continue;
    outcome->remedy_code = remedy->code;
    outcome->remedy = remedy->text;
  }
}

}  // namespace nos::planning
