// Decides which pods may evict which others. Rules only: it searches and evicts nothing.
//
//   const EvictionPolicy policy(engine);
//   if (policy.MayPreempt(profile, *pod) && policy.MayEvict(profile, *pod, *other)) ...
//
// A pod in a namespace with a quota reclaims what its quota guarantees. Pods in other namespaces
// preempt only each other, by priority. Owned by one thread.
#pragma once

#include "controllers/scheduler/profile.h"
#include "scheduling/engine.h"
#include "scheduling/plugins/capacity_scheduling/plugin.h"

namespace nos::controllers {

class EvictionPolicy {
 public:
  // The engine must outlive this object.
  explicit EvictionPolicy(const scheduling::Engine& engine) : engine_(engine) {}
  EvictionPolicy(const EvictionPolicy&) = delete;
  EvictionPolicy& operator=(const EvictionPolicy&) = delete;

  // The pod's namespace has a quota, so the pod may reclaim its guarantee.
  bool HasQuota(const scheduling::Framework& framework, const cluster::Pod& pod) const;
  // True if the pod may preempt at all and some pod may be a victim.
  bool MayPreempt(const SchedulerProfile& profile, const cluster::Pod& pod) const;
  // By priority only. A pod never preempts a member of its own gang, which is useless without that
  // member.
  bool MayEvict(const SchedulerProfile& profile, const cluster::Pod& pod,
                const cluster::Pod& other) const;
  // True if binding `bound` made its quota exceed what the pod's quota may reclaim. The victim may
  // be another pod of the same quota.
  bool MayReclaimFrom(const cluster::Pod& pod, const cluster::Pod& bound) const;
  // Stands for quotas as a reason why a pod is refused. The queue asks it which events may help.
  const scheduling::Plugin& quota_terms() const { return quota_terms_; }

 private:
  const scheduling::Engine& engine_;
  const scheduling::QuotaTerms quota_terms_{
      [this](const cluster::Pod& pod, const cluster::Pod& bound) {
        return MayReclaimFrom(pod, bound);
      }};
};

}  // namespace nos::controllers
