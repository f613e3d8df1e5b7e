// CEL expressions about devices, evaluated by src/cel: the same answers, errors and limits as in
// kube-scheduler.
//
// An expression is compiled once, and evaluated once for all devices that agree in what it reads,
// if both are among the last ones used. Most read two or three attributes, in which the devices of
// a cluster have a few dozen values. Any user may write claims, so the caches are bounded, and the
// cost limit of the API bounds the time of an evaluation.
//
// Not thread-safe: a question fills caches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "dra/selectors.h"

namespace nos::dra {

class CelExpressions final : public DeviceExpressions {
 public:
  struct Limits {
    size_t expressions = 4096;
    size_t nodes = 500'000;   // of the trees of all these expressions; a node takes some 300 bytes
    size_t answers = 16'384;  // of selectors, and as many of derived attributes
    size_t contents = 1024;   // several nodes' devices, of some 4 KiB each
    uint64_t cost = 1'000'000;  // of one evaluation, in the API's units (cel::kMaxCost)
  };
  struct Counts {
    int64_t compiled = 0, prepared = 0, evaluated = 0;
    uint64_t cost = 0;  // in upstream's units
  };

  CelExpressions();
  explicit CelExpressions(const Limits& limits);
  ~CelExpressions() override;

  Result<bool> Matches(const std::string& expression, const ResourceSlice& slice,
                       const Device& device) const override;
  Result<Attribute> Derive(const std::string& expression, const ResourceSlice& slice,
                           const Device& device) const override;

  // The work done so far.
  uint64_t cost() const override;
  const Counts& counts() const;

 private:
  class Caches;
  std::unique_ptr<Caches> caches_;
};

}  // namespace nos::dra
