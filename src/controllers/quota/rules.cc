#include "controllers/quota_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "controllers/quota_status.h"

namespace nos::controllers {
namespace {

using cluster::ElasticQuota;
using cluster::ResourceList;
using quota::SharedQuota;

constexpr const char* kNoNamespaces =
    "spec.namespaces is empty: name the namespaces that share this quota";
constexpr size_t kMaxFindings = 100;
constexpr size_t kMaxNamespaces = 1000;  // as in the CRD (deploy/helm/nos)

Quantity Get(const ResourceList& list, std::string_view name) {
  const auto found = list.find(name);
  return found == list.end() ? Quantity() : found->second;
}

void Add(const ResourceList& more, ResourceList& to) {
  for (const auto& [name, amount] : more) to[name] = to[name] + amount;
}

bool IsSame(const ElasticQuota& a, const ElasticQuota& b) {
  return a.composite == b.composite && a.meta.ns == b.meta.ns && a.meta.name == b.meta.name;
}

void NamesOnly(const char* field, const ResourceList& limit, const ElasticQuota& quota,
               std::vector<QuotaProblem>& to) {
  for (const auto& [name, amount] : limit) {
    if (quota.min.contains(name)) continue;
    to.push_back(
        {fmt::format("{} {}", field, name),
         {},
         fmt::format("spec.{} names {}, which spec.min does not: only what min names is lent and "
                     "borrowed; add it there (0 will do)",
                     field, name)});
  }
}

std::vector<QuotaProblem> LimitProblems(const ElasticQuota& quota) {
  std::vector<QuotaProblem> problems;
  for (const auto& [name, most] : quota.max) {
    const Quantity min = Get(quota.min, name);
    if (most >= min) continue;
    problems.push_back(
        {"max " + name, min - most,
         fmt::format("spec.max of {} is {}, less than the {} of spec.min: raise max or lower min",
                     name, TextOf(name, most), TextOf(name, min))});
  }
  NamesOnly("borrowingLimit", quota.borrowing_limit, quota, problems);
  NamesOnly("lendingLimit", quota.lending_limit, quota, problems);
  return problems;
}

// A parent's own min must cover what it guarantees to its children. Keyed by resource.
std::map<std::string, QuotaProblem> SumProblems(const ElasticQuota& parent,
                                                const ResourceList& below) {
  std::map<std::string, QuotaProblem> problems;
  for (const auto& [name, sum] : below) {
    const Quantity min = Get(parent.min, name);
    if (sum <= min) continue;
    problems[name] = {
        fmt::format("below {} {}", parent.Key(), name), sum - min,
        fmt::format("the quotas below {} are guaranteed {} of {} together, and it has {}: lower "
                    "their spec.min or raise its",
                    parent.Key(), TextOf(name, sum), name, TextOf(name, min))};
  }
  return problems;
}

// Checks one quota against all others.
class Check {
 public:
  Check(const ElasticQuota& quota, const std::vector<SharedQuota>& all) : quota_(quota) {
    for (const SharedQuota& each : all) {
      if (!IsSame(*each, quota)) others_.push_back(each.get());
    }
    // If two quotas have the same name, the composite one is meant, as in quota/balance.h.
    for (const ElasticQuota* each : others_) Know(*each);
    Know(quota);
  }

  QuotaFindings Run() {
    quota_.composite ? Composite() : Single();
    Limits();
    Parents();
    Guarantees();
    return std::move(findings_);
  }

 private:
  void Know(const ElasticQuota& quota) {
    const ElasticQuota*& known = by_key_[quota.Key()];
    if (known == nullptr || quota.composite) known = &quota;
  }
  void Wrong(std::string rule, std::string text) { Wrong({std::move(rule), {}, std::move(text)}); }
  void Wrong(QuotaProblem problem) {
    if (findings_.problems.size() == kMaxFindings) return;
    findings_.problems.push_back(std::move(problem));
  }
  void Warn(std::string text) {
    if (findings_.warnings.size() < kMaxFindings) findings_.warnings.push_back(std::move(text));
  }

  void Single() {
    for (const ElasticQuota* other : others_) {
      if (std::ranges::find(other->namespaces, quota_.meta.ns) == other->namespaces.end()) continue;
      if (other->composite) {
        Wrong("in " + other->Key(),
              fmt::format("the CompositeElasticQuota {} covers namespace {} already: change that "
                          "one, or take the namespace out of its spec.namespaces first",
                          other->Key(), quota_.meta.ns));
      } else {
        Wrong(
            "beside " + other->Key(),
            fmt::format("namespace {} has an ElasticQuota already, {}: change that one, or delete "
                        "it first",
                        quota_.meta.ns, other->meta.name));
      }
    }
  }

  void Composite() {
    if (quota_.namespaces.size() > kMaxNamespaces) {
      return Wrong("many",
                   fmt::format("spec.namespaces names more than {}: make several quotas with "
                               "one parent of them",
                               kMaxNamespaces));
    }
    if (quota_.namespaces.empty()) {
      Wrong("namespaces", kNoNamespaces);
    }
    std::set<std::string_view> mine;
    for (const std::string& ns : quota_.namespaces) {
      if (mine.insert(ns).second) continue;
      Wrong("twice " + ns, fmt::format("spec.namespaces has {} twice: name it once", ns));
    }
    for (const ElasticQuota* other : others_) {
      for (const std::string& ns : other->namespaces) {
        if (mine.contains(ns)) Shares(*other, ns);
      }
    }
  }

  void Shares(const ElasticQuota& other, const std::string& ns) {
    if (other.composite) {
      Wrong("shares " + ns + " with " + other.Key(),
            fmt::format("namespace {} belongs to the CompositeElasticQuota {} already: take it out "
                        "of the spec.namespaces of one of them",
                        ns, other.Key()));
    } else {
      Warn(fmt::format("ElasticQuota {} counts no more: this quota covers its namespace",
                       other.Key()));
    }
  }

  void Limits() {
    for (QuotaProblem& problem : LimitProblems(quota_)) Wrong(std::move(problem));
    for (const auto& [name, most] : quota_.lending_limit) {
      if (most <= Get(quota_.min, name)) continue;
      Warn(fmt::format("spec.lendingLimit of {} is more than min and limits nothing", name));
    }
  }

  const ElasticQuota* ParentOf(const ElasticQuota& quota) const {
    const auto found = by_key_.find(quota.parent);
    return quota.parent.empty() || found == by_key_.end() ? nullptr : found->second;
  }

  void Parents() {
    if (quota_.parent.empty()) return;
    const ElasticQuota* above = ParentOf(quota_);
    if (above == nullptr) {
      Warn(fmt::format("there is no quota {} yet: until then this one has no parent",
                       quota_.parent));
    }
    // Bounded by the number of quotas: other quotas may form a cycle of their own.
    for (size_t i = 0; above != nullptr && i <= others_.size(); ++i) {
      if (IsSame(*above, quota_)) {
        return Wrong("circle",
                     fmt::format("spec.parent {} is this quota or below it: name one that "
                                 "is not, or none",
                                 quota_.parent));
      }
      above = ParentOf(*above);
    }
  }

  void Guarantees() {
    if (const ElasticQuota* parent = ParentOf(quota_); parent != nullptr) Fits(*parent);
    if (by_key_.at(quota_.Key()) == &quota_) Fits(quota_);
  }

  void Fits(const ElasticQuota& parent) {
    for (auto& [name, problem] : SumProblems(parent, SumBelow(parent))) Wrong(std::move(problem));
  }

  ResourceList SumBelow(const ElasticQuota& parent) const {
    ResourceList sum;
    for (const ElasticQuota* other : others_) {
      if (ParentOf(*other) == &parent) Add(other->min, sum);
    }
    if (ParentOf(quota_) == &parent) Add(quota_.min, sum);
    return sum;
  }

  const ElasticQuota& quota_;
  std::vector<const ElasticQuota*> others_;
  std::map<std::string, const ElasticQuota*, std::less<>> by_key_;
  QuotaFindings findings_;
};

}  // namespace

QuotaFindings CheckQuota(const ElasticQuota& quota, const std::vector<SharedQuota>& all) {
  return Check(quota, all).Run();
}

std::vector<std::vector<std::string>> ProblemsInForce(const quota::Balance& balance) {
  std::vector<std::vector<std::string>> problems;
  std::map<size_t, ResourceList> below;
  for (size_t i = 0; i < balance.size(); ++i) {
    const quota::Terms& terms = balance.terms(i);
    problems.push_back(terms.problems);
    if (terms.quota->namespaces.empty() && !terms.in_force) problems[i].push_back(kNoNamespaces);
    for (const QuotaProblem& problem : LimitProblems(*terms.quota)) {
      problems[i].push_back(problem.text);
    }
    if (terms.parent) Add(terms.quota->min, below[*terms.parent]);
  }
  std::map<size_t, std::map<std::string, QuotaProblem>> sums;
  for (const auto& [parent, sum] : below) {
    sums[parent] = SumProblems(*balance.terms(parent).quota, sum);
    for (const auto& [name, problem] : sums[parent]) problems[parent].push_back(problem.text);
  }
  for (size_t i = 0; i < balance.size(); ++i) {
    const quota::Terms& terms = balance.terms(i);
    if (!terms.parent) continue;
    for (const auto& [name, problem] : sums[*terms.parent]) {
      if (Get(terms.quota->min, name) > Quantity()) problems[i].push_back(problem.text);
    }
  }
  return problems;
}

std::vector<QuotaProblem> NewProblems(const QuotaFindings& before, QuotaFindings after) {
  std::erase_if(after.problems, [&](const QuotaProblem& problem) {
    const auto known = std::ranges::find(before.problems, problem.rule, &QuotaProblem::rule);
    return known != before.problems.end() && problem.excess <= known->excess;
  });
  return std::move(after.problems);
}

}  // namespace nos::controllers
