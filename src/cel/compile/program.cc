#include "cel/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "cel/check/checker.h"
#include "cel/compile/attribute_value.h"
#include "cel/compile/reads.h"
#include "cel/estimate/cost.h"
#include "cel/eval/device_maps.h"
#include "cel/eval/planner.h"
#include "cel/syntax/parser.h"
#include "cel/values/cancelled.h"
#include "cel/values/equality.h"
#include "cel/values/semver.h"
#include "cel/values/step_limit.h"

namespace nos::cel {
namespace {

Evaluation Failed(Failure failure, std::string_view error, uint64_t cost) {
  return {false, failure, std::string(error), cost};
}

// The result as a bool. An optional value is looked into, as upstream does it.
Evaluation ToEvaluation(Value value, uint64_t cost) {
  while (value.is(Kind::kOptional)) {
    if (value.optional() == nullptr) {
      return Failed(Failure::kError, "optional.none() is not a bool", cost);
    }
    value = *value.optional();
  }
  if (value.is(Kind::kBool)) return {value.boolean(), Failure::kNone, "", cost};
  if (value.IsError()) return Failed(Failure::kError, value.text(), cost);
  return Failed(
      Failure::kError,
      fmt::format("CEL result of type {} could not be converted to bool", TypeName(value)), cost);
}

Failure FailureOf(Cancelled::Cause cause) {
  switch (cause) {
    case Cancelled::Cause::kLimit:
      return Failure::kLimit;
    case Cancelled::Cause::kInterrupted:
      return Failure::kInterrupted;
    case Cancelled::Cause::kInternal:
      return Failure::kError;
  }
  return Failure::kError;
}

// Calls finish(value, cost) with the result, or fail(failure, error, cost) if the evaluation ends
// before.
template <typename Finish, typename Fail>
auto Run(const Plan& plan, const Device& device, const EvaluateOptions& options, Finish finish,
         Fail fail) {
  if (!device.error().empty()) return fail(Failure::kDevice, device.error(), 0);
  thread_local Arena arena;
  thread_local std::vector<Slot> slots;
  arena.Reset();
  slots.assign(plan.slot_count(), Slot());
  StepLimit::Reset();
  Frame frame(arena, device.maps(), slots, options.max_cost, options.interrupted);
  try {
    const Value value = plan.root().Run(frame);
    return finish(value, frame.cost());
  } catch (const Cancelled& cancelled) {
    return fail(FailureOf(cancelled.cause()), cancelled.what(), frame.cost());
  }
}

Status CheckType(const Type& type, Purpose purpose) {
  if (purpose == Purpose::kAttribute) {
    if (IsAttributeType(type)) return Status::Ok();
    return Invalid(
        fmt::format("must evaluate to a bool, int, string or version, or to a list of one of them, "
                    "not {}",
                    type.ToString()));
  }
  if (type.is(TypeKind::kBool) || type.is(TypeKind::kDyn)) return Status::Ok();
  return Invalid(fmt::format("must evaluate to bool or the unknown type, not {}", type.ToString()));
}

}  // namespace

bool IsVersion(const std::string& text) {
  Arena arena;
  return Semver::Parse(arena, text) != nullptr;
}

Device::Device(const DeviceSpec& spec) : maps_(std::make_unique<const DeviceMaps>(spec, error_)) {}
Device::~Device() = default;
Device::Device(Device&&) noexcept = default;
Device& Device::operator=(Device&&) noexcept = default;

Program::Program(std::unique_ptr<const Plan> plan, uint64_t estimated_cost, Reads reads,
                 size_t size)
    : plan_(std::move(plan)),
      estimated_cost_(estimated_cost),
      reads_(std::move(reads)),
      size_(size) {}
Program::~Program() = default;

Result<std::unique_ptr<const Program>> Program::Compile(std::string_view expression,
                                                        Purpose purpose) {
  if (expression.size() > kMaxExpressionBytes) {
    return Invalid(fmt::format("the expression has more than {} bytes", kMaxExpressionBytes));
  }
  NOS_ASSIGN(std::unique_ptr<Ast> ast, Parse(expression));
  TypeStore types;
  NOS_RETURN_IF_ERROR(Check(*ast, types));
  NOS_RETURN_IF_ERROR(CheckType(*ast->root->type, purpose));
  const uint64_t estimated_cost = EstimateCost(*ast);
  Reads reads = ReadsOf(*ast->root);
  const size_t size = ast->size();
  NOS_ASSIGN(std::unique_ptr<const Plan> plan, Plan::Make(std::move(ast)));
  return std::unique_ptr<const Program>(
      new Program(std::move(plan), estimated_cost, std::move(reads), size));
}

Evaluation Program::Evaluate(const Device& device, const EvaluateOptions& options) const {
  return Run(*plan_, device, options, ToEvaluation, Failed);
}

Derivation Program::Derive(const Device& device, const EvaluateOptions& options) const {
  return Run(
      *plan_, device, options,
      [](const Value& value, uint64_t cost) {
        Derivation derivation;
        derivation.cost = cost;
        if (value.IsError()) {
          return Derivation{{}, Failure::kError, std::string(value.text()), cost};
        }
        const Status status = ToAttribute(value, derivation.value);
        if (!status.ok()) return Derivation{{}, Failure::kError, status.message(), cost};
        return derivation;
      },
      [](Failure failure, std::string_view error, uint64_t cost) {
        return Derivation{{}, failure, std::string(error), cost};
      });
}

}  // namespace nos::cel
