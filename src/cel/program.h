// CEL selectors of Dynamic Resource Allocation, as Kubernetes 1.37 compiles and evaluates them:
//
//   auto program = Program::Compile("device.driver == 'gpu.nvidia.com'");
//   if (!program.ok()) ...
//   Evaluation evaluation = (*program)->Evaluate(device);
//   if (evaluation.failure != Failure::kNone) ...  // as upstream: the scheduling attempt fails
//
// Expressions of derived attributes have another type, and Derive() in the place of Evaluate().
//
// README.md lists the environment, the limits and the differences from upstream.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "cel/device.h"

namespace nos::cel {

// resource.k8s.io/v1 CELSelectorExpressionMaxCost and CELSelectorExpressionMaxLength.
inline constexpr uint64_t kMaxCost = 1'000'000;
inline constexpr size_t kMaxExpressionBytes = size_t{10} * 1024;

struct EvaluateOptions {
  uint64_t max_cost = kMaxCost;
  // Ends an evaluation once it is true; looked at after every 100 iterations. May be null.
  const std::atomic<bool>* interrupted = nullptr;
};

enum class Failure {
  kNone,
  kError,        // the expression fails for this device: a key that is not there, no overload
  kLimit,        // the cost limit, or a limit of memory and steps
  kInterrupted,  // by EvaluateOptions::interrupted
  kDevice,       // the device has a value that is not valid
};

struct Evaluation {
  bool matches = false;
  Failure failure = Failure::kNone;
  std::string error;  // empty on success
  uint64_t cost = 0;  // in upstream's units, also of an evaluation that failed
};

// The value of a derived attribute.
struct Derivation {
  AttributeValue value;  // a list without elements: of strings
  Failure failure = Failure::kNone;
  std::string error;
  uint64_t cost = 0;  // as in Evaluation
};

enum class Purpose {
  kSelector,   // has the type bool, or dyn
  kAttribute,  // has the type bool, int, string, version or dyn, or is a list of one of them
};

// The parts of a device that an expression may read, beside the driver and
// allowMultipleAllocations. Devices that agree in them get the same answer, if both are valid.
struct Reads {
  struct Path {
    bool capacity = false;  // otherwise an attribute
    std::string domain;     // empty: the driver's
    std::string id;
    friend auto operator<=>(const Path&, const Path&) = default;
  };
  bool all = false;         // not known: any part
  std::vector<Path> paths;  // sorted, each once
};

class Plan;

class Program {
 public:
  // Error: kInvalid with the cause if the expression is not accepted.
  static Result<std::unique_ptr<const Program>> Compile(std::string_view expression,
                                                        Purpose purpose = Purpose::kSelector);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // Both may be called from any thread, at the same time.
  Evaluation Evaluate(const Device& device, const EvaluateOptions& options = {}) const;
  Derivation Derive(const Device& device, const EvaluateOptions& options = {}) const;

  // The most that an evaluation can cost, as the API server estimates it before it stores a
  // selector; it refuses those above kMaxCost.
  uint64_t estimated_cost() const { return estimated_cost_; }
  const Reads& reads() const { return reads_; }
  // Nodes of its tree, to which its memory is proportional: some 300 bytes for each.
  size_t size() const { return size_; }

 private:
  Program(std::unique_ptr<const Plan> plan, uint64_t estimated_cost, Reads reads, size_t size);

  std::unique_ptr<const Plan> plan_;
  uint64_t estimated_cost_;
  Reads reads_;
  size_t size_;
};

}  // namespace nos::cel
