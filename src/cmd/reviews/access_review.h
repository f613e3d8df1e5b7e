// SubjectAccessReviews: whether the API server lets a user do something.
#pragma once

#include <utility>

#include "codec/json.h"
#include "kube/client.h"

namespace nos::cmd {

inline const kube::Resource kAccessReviews{"authorization.k8s.io", "v1", "subjectaccessreviews",
                                           "SubjectAccessReview", false};

// `spec`: the user, as ReviewToken returns it, with resourceAttributes or nonResourceAttributes.
inline Json AccessReview(JsonObject spec) {
  return {{"apiVersion", kAccessReviews.group + "/" + kAccessReviews.version},
          {"kind", kAccessReviews.kind},
          {"spec", std::move(spec)}};
}

inline bool IsAllowed(const Json& reviewed) {
  const Json* allowed = Find(reviewed, "status", "allowed");
  return allowed != nullptr && *allowed == Json(true);
}

}  // namespace nos::cmd
