// Answers of CEL expressions about devices: the allocator's view of an evaluator.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "dra/objects.h"

namespace nos::dra {

// Answers depend only on the expression and on the device's driver, attributes, capacity and
// allow_multiple, so callers may remember them.
class DeviceExpressions {
 public:
  virtual ~DeviceExpressions() = default;
  // Error: kInvalid: the expression does not compile, or fails for this device.
  virtual Result<bool> Matches(const std::string& expression, const ResourceSlice& slice,
                               const Device& device) const = 0;
  // The value of a derived attribute. Errors as above.
  virtual Result<Attribute> Derive(const std::string& expression, const ResourceSlice& slice,
                                   const Device& device) const = 0;
  // The sum of the costs of all evaluations so far, in CEL cost units (cel/program.h). A remembered
  // answer adds nothing.
  virtual uint64_t cost() const { return 0; }
};

}  // namespace nos::dra
