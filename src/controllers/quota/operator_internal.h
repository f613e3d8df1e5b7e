// Declarations shared by the operator's source files. Internal to it.
#pragma once

#include <string>

#include "controllers/operator.h"

namespace nos::controllers {

const kube::Resource& QuotaResource(bool composite);
// "elasticquotas/team-a/quota"
std::string NameOf(const cluster::ElasticQuota& quota);
// The object was deleted or replaced: the next watch event decides.
inline bool IsGone(const Status& written) {
  return written.code() == Code::kNotFound || written.code() == Code::kConflict;
}

}  // namespace nos::controllers
