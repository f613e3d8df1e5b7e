// Claims as the search reads them: requests and alternatives with their classes.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dra/allocator.h"

namespace nos::dra {

// A request, or one of the alternatives of a request.
struct PreparedRequest {
  const ExactRequest* spec = nullptr;
  size_t id = 0;       // numbers the requests of all claims
  std::string parent;  // the request's name; `name` adds the alternative's
  std::string name;
  std::shared_ptr<const DeviceClass> device_class;
  std::vector<std::string> selectors;  // of the class, then of the request
  Name selectors_key;                  // identifies them
  bool all = false;                    // allocationMode All
  int64_t count = 0;                   // otherwise
  bool admin = false;
  std::vector<size_t> constraints;  // those that apply, as indices
};

struct PreparedConstraint {
  std::string attribute;
  Name name;
  bool distinct = false;
};

struct PreparedClaim {
  std::shared_ptr<const ResourceClaim> claim;
  // For each request its alternatives, of which one is allocated.
  std::vector<std::vector<PreparedRequest>> requests;
  std::vector<PreparedConstraint> constraints;
};

// The expression of a derived attribute of the request; null if it has none of this name.
const std::string* FindDerived(const PreparedRequest& request, const std::string& attribute);

}  // namespace nos::dra
