#include "cluster/elastic_quota.h"

#include <tuple>

#include "cluster/fields.h"
#include "cluster/read_parts.h"

namespace nos::cluster {
namespace {

constexpr int64_t kMaxWeight = 1000;

void ReadWeight(Field& from, int64_t& to) {
  from.Read(to);
  if (to < 1 || to > kMaxWeight) from.Fail("must be from 1 to 1000");
}

void ReadStatus(Field& from, QuotaStatus& to) {
  from.Members(At("used", to.used), At("guaranteed", to.guaranteed), At("borrowed", to.borrowed),
               At("lent", to.lent), At("podsOverQuota", to.pods_over_quota),
               At("conditions", to.conditions, ReadCondition));
}

Status Read(JsonSource json, bool composite, ElasticQuota& to) {
  to = ElasticQuota();
  to.composite = composite;
  NOS_RETURN_IF_ERROR(ReadFields(json, [&](Field& root) {
    root.Members(At("metadata", to.meta, ReadMeta),
                 At("spec",
                    [&](Field& spec) {
                      spec.Members(At("min", to.min), At("max", to.max),
                                   At("borrowingLimit", to.borrowing_limit),
                                   At("lendingLimit", to.lending_limit),
                                   At("weight", to.weight, ReadWeight), At("parent", to.parent),
                                   At("namespaces", to.namespaces));
                    }),
                 At("status", to.status, ReadStatus));
  }));
  if (!composite) to.namespaces = {to.meta.ns};
  return to.meta.name.empty() ? Invalid("metadata.name: is missing") : Status::Ok();
}

}  // namespace

bool SameTerms(const ElasticQuota& a, const ElasticQuota& b) {
  const auto terms = [](const ElasticQuota& quota) {
    return std::tie(quota.meta.uid, quota.meta.ns, quota.meta.name, quota.composite,
                    quota.namespaces, quota.min, quota.max, quota.borrowing_limit,
                    quota.lending_limit, quota.weight, quota.parent, quota.meta.created);
  };
  return terms(a) == terms(b);
}

Status ReadElasticQuota(JsonSource json, ElasticQuota& to) { return Read(json, false, to); }
Status ReadCompositeElasticQuota(JsonSource json, ElasticQuota& to) { return Read(json, true, to); }

}  // namespace nos::cluster
