// Reads collections: selectors, pages, and lists at an older version.
#pragma once

#include "sim/apiserver/schemas/selectors.h"
#include "sim/apiserver/storage/state.h"

namespace nos::sim {

struct Selection {
  std::string ns;  // empty: all
  LabelSelector labels;
  FieldSelector fields;

  bool Matches(const Json& object) const {
    return labels.Matches(object) && fields.Matches(object);
  }
};
// Refusal: 400.
Outcome<Selection> ParseSelection(const ResourceType& type, const std::string& ns,
                                  const kube::ApiRequest& request);

struct Listing {
  std::vector<ObjectRef> objects;
  Json metadata;  // of the list: resourceVersion, continue, remainingItemCount
};
// Objects in key order. All pages of a list show the state at the first page. Refusal: 400; 410 if
// the state of a page is no longer in the history; 422; 504 for a version in the future.
Outcome<Listing> ListObjects(const ApiState& state, const ResourceType& type,
                             const Selection& selection, const kube::ApiRequest& request);

// Parses a resourceVersion parameter; "" is 0. Refusal: 400.
Outcome<uint64_t> ParseVersion(std::string_view text);
// 504: a version that no write has reached yet.
Refusal TooLargeVersion(uint64_t wanted, uint64_t current);

}  // namespace nos::sim
