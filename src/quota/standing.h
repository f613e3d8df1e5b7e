// Splits the pods of a quota into pods covered by min and pods that run on borrowed capacity. The
// result becomes the label nos.nebuly.com/capacity: in-quota|over-quota.
//
// Pods are ordered by age (oldest first), then by priority (highest first), then by charge
// (smallest first), then by name. Pods are in quota while the sum of their charges stays within min
// for every resource that min names. The first pod that exceeds min and all pods after it are over
// quota: these pods may be evicted.
//
// If a resource is named by the parent quota but not by the child, the child's pods share the
// parent's own min of it with pods of the parent's namespaces. Use of such a resource is counted
// separately (SharedStanding).
//
// The order is that of the Go implementation of nos, except for priorities, which it sorted the
// other way.
//
// Values and pure functions of values.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "quota/amounts.h"

namespace nos::quota {

inline constexpr std::string_view kCapacityLabel = "nos.nebuly.com/capacity";
inline constexpr std::string_view kInQuota = "in-quota";
inline constexpr std::string_view kOverQuota = "over-quota";

struct Holder {
  std::shared_ptr<const cluster::Pod> pod;
  Amounts charge;
  bool over_quota = false;               // Set by CountInQuota and Ledger.
  std::vector<std::string> claims = {};  // Keys of the pod's ResourceClaims, for Ledger.
};

// Order in which `min` covers pods: total over pods with distinct names. Charges are compared only
// in resources that `min` names.
class StandingOrder {
 public:
  explicit StandingOrder(const Amounts& min);
  bool operator()(const Holder* a, const Holder* b) const;

 private:
  std::vector<cluster::ResourceId> named_;  // Sorted by name, since ids differ between runs.
};

// Sets over_quota of each holder. Returns how many holders, counted from the front, are in quota.
// REQUIRES: `ordered` is sorted by StandingOrder.
size_t CountInQuota(const Amounts& min, const std::vector<Holder*>& ordered);

// Incremental form of CountInQuota for one resource that pods of several quotas share. Ignores pods
// that do not use the resource. Holders must outlive the object and stay unchanged until they are
// removed.
class SharedStanding {
 public:
  SharedStanding(cluster::ResourceId resource, Amount min);
  SharedStanding(const SharedStanding&) = delete;
  SharedStanding& operator=(const SharedStanding&) = delete;
  // Visits other holders whose coverage the call changed, in either direction.
  using Crossed = FunctionRef<void(const Holder&)>;
  void Add(const Holder& holder, Crossed crossed);
  void Remove(const Holder& holder, Crossed crossed);
  // True if the holder is covered or does not use the resource. REQUIRES: the holder was added.
  bool Covers(const Holder& holder) const;

 private:
  Amount UseOf(const Holder& holder) const { return holder.charge.Get(resource_); }
  bool IsBeforeFirstOver(const Holder& holder) const;

  cluster::ResourceId resource_;
  Amount min_, covered_ = 0;  // covered_: sum over holders before first_over_
  StandingOrder order_;
  std::set<const Holder*, StandingOrder> holders_;
  std::set<const Holder*, StandingOrder>::iterator first_over_;
};

}  // namespace nos::quota
