// ElasticQuota and CompositeElasticQuota (nos.nebuly.com/v1alpha1): what namespaces are guaranteed,
// and how far they may go beyond.
//
// Field names are those of the Go system's objects; `borrowingLimit`, `lendingLimit`, `weight` and
// `parent` are new.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/objects.h"

namespace nos::cluster {

// What is told of a quota: nothing is decided by it.
struct QuotaStatus {
  ResourceList used;        // of what min and max name
  ResourceList guaranteed;  // min, and the share of what is idle now
  ResourceList borrowed;    // beyond min; without zeros
  ResourceList lent;        // of min; without zeros
  int64_t pods_over_quota = 0;
  std::vector<Condition> conditions;
};

struct ElasticQuota {
  ObjectMeta meta;
  bool composite = false;
  // Of a composite one. That which is not composite is for the namespace it is in.
  std::vector<std::string> namespaces;
  ResourceList min;              // guaranteed
  ResourceList max;              // never exceeded
  ResourceList borrowing_limit;  // on top of min
  ResourceList lending_limit;    // of min, what others may have
  int64_t weight = 1;            // of min, for a share of what is idle
  std::string parent;            // "NAMESPACE/NAME", or ""
  QuotaStatus status;

  std::string Key() const { return meta.ns + "/" + meta.name; }
};

// What an API server calls them.
inline constexpr std::string_view kElasticQuota = "ElasticQuota";
inline constexpr std::string_view kCompositeQuota = "CompositeElasticQuota";
inline constexpr std::string_view kQuotaGroup = "nos.nebuly.com";
inline constexpr std::string_view kQuotaVersion = "v1alpha1";

// Whether they mean the same, whatever else is written into them.
bool SameTerms(const ElasticQuota& a, const ElasticQuota& b);

// As ReadPod: what is not known is ignored, a known field of the wrong type is an error with its
// path. So are amounts below 0 and a weight that is not from 1 to 1000.
Status ReadElasticQuota(JsonSource json, ElasticQuota& to);
Status ReadCompositeElasticQuota(JsonSource json, ElasticQuota& to);

}  // namespace nos::cluster
