// What the parts of the operator share. Internal to it.
#pragma once

#include <string>

#include "controllers/operator.h"

namespace nos::controllers {

const kube::Resource& QuotaResource(bool composite);
// "elasticquotas/team-a/quota"
std::string NameOf(const cluster::ElasticQuota& quota);
// The object is not there any more, or it is another: what the watch shows next counts.
inline bool IsGone(const Status& written) {
  return written.code() == Code::kNotFound || written.code() == Code::kConflict;
}

}  // namespace nos::controllers
