#include "scheduling/gang_domains.h"

#include <algorithm>
#include <map>
#include <utility>

#include "scheduling/plugins/inter_pod_affinity/terms.h"

namespace nos::scheduling {
namespace {

using cluster::Pod;
using Members = std::span<const std::shared_ptr<const Pod>>;

// An affinity term and a member that has it. Equal terms of other members of the namespace are
// dropped.
struct OwnTerm {
  const cluster::PodAffinityTerm* term;
  const Pod* owner;
};

std::vector<OwnTerm> TermsOf(Members members) {
  std::vector<OwnTerm> terms;
  for (const auto& owner : members) {
    for (const cluster::PodAffinityTerm& term : owner->pod_affinity.required) {
      const bool known = std::ranges::any_of(terms, [&](const OwnTerm& other) {
        return *other.term == term && other.owner->meta.ns == owner->meta.ns;
      });
      if (!known) terms.push_back({&term, owner.get()});
    }
  }
  return terms;
}

int64_t FreeSlots(const cluster::Gpu& gpu) {
  int64_t slots = gpu.model->slots();
  for (const cluster::Instance& instance : gpu.instances) {
    if (instance.used) slots -= gpu.model->profile(instance.placement.profile).slots;
  }
  return std::max<int64_t>(slots, 0);
}

// Copies of the resource that fit if the free parts of GPUs were partitioned for it alone.
int64_t CopiesIfPartitioned(const cluster::NodeInfo& node, const std::string& resource) {
  int64_t copies = 0;
  for (const cluster::Gpu& gpu : node.gpus.gpus) {
    if (const auto profile = gpu.model->FindProfile(resource)) {
      copies += FreeSlots(gpu) / std::max<int64_t>(gpu.model->profile(*profile).slots, 1);
    } else if (const auto other =
                   gpu.MaySwitch() ? gpu.alternative->FindProfile(resource) : profile) {
      copies +=
          gpu.alternative->slots() / std::max<int64_t>(gpu.alternative->profile(*other).slots, 1);
    }
  }
  return copies;
}

}  // namespace

bool MayFollow(const Pod& pod) {
  return !pod.pod_affinity.required.empty() ||
         std::ranges::any_of(pod.spread, [](const cluster::TopologySpreadConstraint& constraint) {
           return constraint.when_unsatisfiable != "ScheduleAnyway";
         });
}

GangTies::GangTies(Members members)
    : members_(static_cast<int64_t>(members.size())), tied_(members.size()) {
  const std::vector<OwnTerm> terms = TermsOf(members);
  std::vector<OwnTerm> ties;  // terms that select a member
  for (const OwnTerm& own : terms) {
    bool means_one = false;
    for (size_t m = 0; m < members.size(); ++m) {
      if (!MaySelect(*own.term, *own.owner, *members[m])) continue;
      tied_[m] = means_one = true;
    }
    if (!means_one) continue;
    keys_.insert(own.term->topology_key);
    ties.push_back(own);
  }
  for (size_t m = 0; m < members.size(); ++m) {
    tied_[m] = tied_[m] || std::ranges::any_of(ties, [&](const OwnTerm& own) {
                 const auto& required = members[m]->pod_affinity.required;
                 return own.owner->meta.ns == members[m]->meta.ns &&
                        std::ranges::find(required, *own.term) != required.end();
               });
  }
}

std::vector<std::vector<size_t>> GangTies::Domains(std::span<const cluster::NodeInfo* const> nodes,
                                                   FunctionRef<int64_t(size_t)> room) const {
  struct Domain {
    std::vector<size_t> nodes;
    int64_t room = 0;
  };
  std::map<std::vector<std::string>, Domain> by_values;
  for (size_t n = 0; near() && n < nodes.size(); ++n) {
    const cluster::StringMap& labels = nodes[n]->node->meta.labels;
    std::vector<std::string> values;
    for (const std::string& key : keys_) {
      const auto label = labels.find(key);
      if (label != labels.end()) values.push_back(label->second);
    }
    if (values.size() < keys_.size()) continue;
    Domain& domain = by_values[std::move(values)];
    domain.nodes.push_back(n);
    if (domain.room < members_) domain.room += room(n);
  }
  std::vector<Domain> ranked;
  for (auto& [values, domain] : by_values) {
    domain.room = std::min(domain.room, members_);
    if (domain.room > 0) ranked.push_back(std::move(domain));
  }
  std::ranges::stable_sort(ranked, std::ranges::greater(), [](const Domain& domain) {
    return std::pair(domain.room, domain.nodes.size());
  });
  std::vector<std::vector<size_t>> domains;
  domains.reserve(ranked.size());
  for (Domain& domain : ranked) domains.push_back(std::move(domain.nodes));
  return domains;
}

int64_t CopiesOn(const cluster::NodeInfo& node, const cluster::ResourceVector& requests,
                 bool as_partitioned, int64_t most) {
  int64_t copies = most;
  for (const auto& [id, amount] : requests.entries()) {
    if (amount <= 0) continue;
    const int64_t here = as_partitioned && cluster::IsManagedOn(node, id)
                             ? CopiesIfPartitioned(node, cluster::ResourceName(id))
                             : node.allocatable.Get(id) - node.requested.Get(id);
    copies = std::min(copies, std::max<int64_t>(here, 0) / amount);
  }
  return copies;
}

}  // namespace nos::scheduling
