// A stand-in for a CEL evaluator that looks answers up in a table.
#pragma once

#include <map>
#include <string>
#include <tuple>

#include "dra/selectors.h"

namespace nos::dra {

// Answers by expression and device. An expression without an entry for a device is an error.
//
// Without a table, three forms are understood, for tests that need no more:
//   true, false
//   device.driver == "gpu.example.com"
//   device.attributes["gpu.example.com"].model == "a"       (string attributes)
class TableExpressions final : public DeviceExpressions {
 public:
  void Add(const std::string& expression, const std::string& slice, const std::string& device,
           Result<bool> answer);
  void AddDerived(const std::string& expression, const std::string& slice,
                  const std::string& device, Result<Attribute> answer);

  Result<bool> Matches(const std::string& expression, const ResourceSlice& slice,
                       const Device& device) const override;
  Result<Attribute> Derive(const std::string& expression, const ResourceSlice& slice,
                           const Device& device) const override;
  // Expressions evaluated so far.
  int evaluated() const { return evaluated_; }

 private:
  using Key = std::tuple<std::string, std::string, std::string>;
  std::map<Key, Result<bool>> answers_;
  std::map<Key, Result<Attribute>> derived_;
  mutable int evaluated_ = 0;
};

}  // namespace nos::dra
