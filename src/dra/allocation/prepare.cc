#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "dra/allocation/prepared.h"

namespace nos::dra {
namespace {

constexpr int64_t kMaxResults = 32;  // AllocationResultsMaxSize
constexpr size_t kMaxRequests = 32;  // DeviceRequestsMaxSize
constexpr size_t kMaxClaims = 64;    // bounds the depth of the search

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Checks one claim and translates it. Stops at the first fault.
class ClaimReader {
 public:
  ClaimReader(PreparedClaim& to, const FindClass& find_class, const Features& features)
      : to_(to), claim_(*to.claim), find_class_(find_class), features_(features) {}

  std::optional<AllocationFault> Read(size_t& next_id) {
    if (claim_.requests.size() > kMaxRequests) {
      Fail(Fault::kTooManyDevices, fmt::format("a ResourceClaim has {} requests, more than {}",
                                               claim_.requests.size(), kMaxRequests));
      return std::move(fault_);
    }
    for (const DeviceRequest& request : claim_.requests) ReadRequest(request, next_id);
    for (const DeviceConstraint& constraint : claim_.constraints) ReadConstraint(constraint);
    CheckCount();
    return std::move(fault_);
  }

 private:
  // `what` does not name the claim: the verdict also goes to pods whose claims ask for the same.
  void Fail(Fault fault, std::string what) {
    if (!fault_) fault_ = {fault, std::move(what), false};
  }

  void ReadRequest(const DeviceRequest& request, size_t& next_id) {
    std::vector<PreparedRequest>& alternatives = to_.requests.emplace_back();
    if (!request.first_available.empty() && !features_.prioritized_list) {
      return Fail(Fault::kFeatureDisabled,
                  fmt::format("request {} lists alternatives, which DRAPrioritizedList allows",
                              request.name));
    }
    for (const ExactRequest& alternative : request.first_available) {
      Read(alternative, request.name, request.name + "/" + alternative.name,
           alternatives.emplace_back(), next_id);
    }
    if (!request.first_available.empty()) return;
    if (!request.exactly) {
      return Fail(Fault::kUnsupportedRequest,
                  fmt::format("request {} has neither exactly nor firstAvailable", request.name));
    }
    Read(*request.exactly, request.name, request.name, alternatives.emplace_back(), next_id);
    if (request.exactly->admin_access && !features_.admin_access) {
      Fail(Fault::kFeatureDisabled,
           fmt::format("request {} asks for admin access, which DRAAdminAccess allows",
                       request.name));
    }
    alternatives.back().admin = request.exactly->admin_access.value_or(false);
  }

  void Read(const ExactRequest& spec, const std::string& parent, const std::string& name,
            PreparedRequest& to, size_t& next_id) {
    to.spec = &spec;
    to.id = next_id++;
    to.parent = parent;
    to.name = name;
    to.all = spec.mode == "All";
    to.count = to.all ? 0 : spec.count;
    CheckFeatures(spec, name);
    if (!to.all && spec.mode != "ExactCount") {
      Fail(Fault::kUnsupportedRequest,
           fmt::format("request {} has the unknown allocationMode '{}'", name, spec.mode));
    }
    to.device_class = find_class_(spec.device_class);
    if (to.device_class == nullptr) {
      return spec.device_class.empty()
                 ? Fail(Fault::kUnsupportedRequest,
                        fmt::format("request {} names no DeviceClass", name))
                 : Fail(Fault::kMissingClass, fmt::format("request {} names DeviceClass {}, which "
                                                          "does not exist; create it",
                                                          name, spec.device_class));
    }
    AddSelectors(to.device_class->selectors, "DeviceClass " + to.device_class->name, to);
    AddSelectors(spec.selectors, "request " + name, to);
    std::string key;
    for (const std::string& selector : to.selectors) key += selector + '\0';
    to.selectors_key = Name(key);
    for (size_t i = 0; i < claim_.constraints.size(); ++i) {
      const std::vector<std::string>& names = claim_.constraints[i].requests;
      if (names.empty() || Contains(names, parent) || Contains(names, name)) {
        to.constraints.push_back(i);
      }
    }
  }

  void CheckFeatures(const ExactRequest& spec, const std::string& name) {
    if (spec.capacity && !features_.consumable_capacity) {
      Fail(Fault::kFeatureDisabled,
           fmt::format("request {} asks for capacity, which DRAConsumableCapacity allows", name));
    }
    if (!spec.derived.empty() && !features_.derived_attributes) {
      Fail(Fault::kFeatureDisabled,
           fmt::format("request {} derives attributes, which DRADerivedAttributes allows", name));
    }
  }

  void AddSelectors(const std::vector<std::optional<std::string>>& selectors,
                    const std::string& owner, PreparedRequest& to) {
    for (const auto& selector : selectors) {
      if (!selector) {
        return Fail(Fault::kUnsupportedRequest,
                    fmt::format("{} has a selector without a CEL expression", owner));
      }
      to.selectors.push_back(*selector);
    }
  }

  void ReadConstraint(const DeviceConstraint& constraint) {
    const bool distinct = !constraint.match_attribute;
    if (distinct && !constraint.distinct_attribute) {
      Fail(Fault::kUnsupportedRequest,
           "a constraint is neither matchAttribute nor distinctAttribute");
      return;
    }
    PreparedConstraint& to = to_.constraints.emplace_back();
    to.distinct = distinct;
    to.attribute = distinct ? *constraint.distinct_attribute : *constraint.match_attribute;
    to.name = Name(to.attribute);
  }

  // Counts without "all devices", whose number depends on the node.
  void CheckCount() {
    int64_t total = 0;
    for (const std::vector<PreparedRequest>& alternatives : to_.requests) {
      if (alternatives.empty()) continue;
      const auto least = std::min_element(
          alternatives.begin(), alternatives.end(),
          [](const PreparedRequest& a, const PreparedRequest& b) { return a.count < b.count; });
      if (least->count > kMaxResults - total) {
        return Fail(Fault::kTooManyDevices,
                    fmt::format("request {} asks for {} devices beside {} others; a claim has at "
                                "most {}",
                                least->parent, least->count, total, kMaxResults));
      }
      total += std::max<int64_t>(least->count, 0);
    }
  }

  PreparedClaim& to_;
  const ResourceClaim& claim_;
  const FindClass& find_class_;
  const Features& features_;
  std::optional<AllocationFault> fault_;
};

}  // namespace

PreparedClaims::PreparedClaims(std::vector<std::shared_ptr<const ResourceClaim>> claims,
                               const FindClass& find_class, const Features& features) {
  size_t next_id = 0;
  if (claims.size() > kMaxClaims) {
    fault_ = {Fault::kTooManyDevices,
              fmt::format("{} claims for one pod are more than {}", claims.size(), kMaxClaims),
              false};
    return;
  }
  for (std::shared_ptr<const ResourceClaim>& claim : claims) {
    PreparedClaim& prepared = claims_.emplace_back();
    prepared.claim = std::move(claim);
    std::optional<AllocationFault> fault =
        ClaimReader(prepared, find_class, features).Read(next_id);
    if (!fault_) fault_ = std::move(fault);
  }
}
PreparedClaims::~PreparedClaims() = default;
PreparedClaims::PreparedClaims(PreparedClaims&&) noexcept = default;

const std::string* FindDerived(const PreparedRequest& request, const std::string& attribute) {
  for (const DerivedAttribute& derived : request.spec->derived) {
    if (derived.name == attribute) return &derived.expression;
  }
  return nullptr;
}

const char* FaultName(Fault fault) {
  switch (fault) {
    case Fault::kNone:
      return "None";
    case Fault::kFeatureDisabled:
      return "FeatureDisabled";
    case Fault::kMissingClass:
      return "MissingClass";
    case Fault::kUnsupportedRequest:
      return "UnsupportedRequest";
    case Fault::kTooManyDevices:
      return "TooManyDevices";
    case Fault::kExpressionFailed:
      return "ExpressionFailed";
    case Fault::kCapacityNotRepresentable:
      return "CapacityNotRepresentable";
    case Fault::kNegativeCapacity:
      return "NegativeCapacity";
    case Fault::kConstraintExcludesAll:
      return "ConstraintExcludesAll";
    case Fault::kPoolIncomplete:
      return "PoolIncomplete";
    case Fault::kPoolInvalid:
      return "PoolInvalid";
  }
  return "None";
}

}  // namespace nos::dra
