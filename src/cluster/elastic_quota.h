// ElasticQuota and CompositeElasticQuota (nos.nebuly.com/v1alpha1): the resources guaranteed to
// namespaces, and the limits of borrowing.
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

// Reported status of a quota; no decision uses it.
struct QuotaStatus {
  ResourceList used;        // of the resources in min and max
  ResourceList guaranteed;  // min, plus the share of idle capacity now
  ResourceList borrowed;    // beyond min; without zeros
  ResourceList lent;        // of min; without zeros
  int64_t pods_over_quota = 0;
  std::vector<Condition> conditions;
};

struct ElasticQuota {
  ObjectMeta meta;
  bool composite = false;
  // Only of a CompositeElasticQuota. An ElasticQuota applies to its own namespace.
  std::vector<std::string> namespaces;
  ResourceList min;              // guaranteed
  ResourceList max;              // never exceeded
  ResourceList borrowing_limit;  // in addition to min
  ResourceList lending_limit;    // the part of min that others may borrow
  int64_t weight = 1;            // relative share of idle capacity, on top of min
  std::string parent;            // "NAMESPACE/NAME", or ""
  QuotaStatus status;

  std::string Key() const { return meta.ns + "/" + meta.name; }
};

// Names in the API.
inline constexpr std::string_view kElasticQuota = "ElasticQuota";
inline constexpr std::string_view kCompositeQuota = "CompositeElasticQuota";
inline constexpr std::string_view kQuotaGroup = "nos.nebuly.com";
inline constexpr std::string_view kQuotaVersion = "v1alpha1";

// True if both have the same terms; other fields are not compared.
bool SameTerms(const ElasticQuota& a, const ElasticQuota& b);

// Like ReadPod: unknown fields are ignored, a known field of the wrong type is an error with its
// path. Negative amounts and a weight outside 1 to 1000 are errors too.
Status ReadElasticQuota(JsonSource json, ElasticQuota& to);
Status ReadCompositeElasticQuota(JsonSource json, ElasticQuota& to);

}  // namespace nos::cluster
