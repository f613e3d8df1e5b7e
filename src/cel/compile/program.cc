#include "cel/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "cel/check/checker.h"
#include "cel/estimate/estimate.h"
#include "cel/eval/device_maps.h"
#include "cel/eval/planner.h"
#include "cel/syntax/parser.h"
#include "cel/values/equality.h"

namespace nos::cel {
namespace {

// The result as a bool. An optional value is looked into, as upstream does it.
Evaluation ToEvaluation(Value value, uint64_t cost) {
  while (value.is(Kind::kOptional)) {
    if (value.optional() == nullptr) return {false, "optional.none() is not a bool", cost};
    value = *value.optional();
  }
  if (value.IsError()) return {false, std::string(value.text()), cost};
  if (!value.is(Kind::kBool)) {
    return {false,
            fmt::format("CEL result of type {} could not be converted to bool", TypeName(value)),
            cost};
  }
  return {value.boolean(), "", cost};
}

}  // namespace

Device::Device(const DeviceSpec& spec) : maps_(std::make_unique<const DeviceMaps>(spec, error_)) {}
Device::~Device() = default;
Device::Device(Device&&) noexcept = default;
Device& Device::operator=(Device&&) noexcept = default;

Program::Program(std::unique_ptr<const Plan> plan, uint64_t estimated_cost)
    : plan_(std::move(plan)), estimated_cost_(estimated_cost) {}
Program::~Program() = default;

Result<std::unique_ptr<const Program>> Program::Compile(std::string_view expression) {
  if (expression.size() > kMaxExpressionBytes) {
    return Invalid(fmt::format("the expression has more than {} bytes", kMaxExpressionBytes));
  }
  NOS_ASSIGN(std::unique_ptr<Ast> ast, Parse(expression));
  TypeStore types;
  NOS_RETURN_IF_ERROR(Check(*ast, types));
  const Type& type = *ast->root->type;
  if (!type.is(TypeKind::kBool) && !type.is(TypeKind::kDyn)) {
    return Invalid(
        fmt::format("must evaluate to bool or the unknown type, not {}", type.ToString()));
  }
  const uint64_t estimated_cost = EstimateCost(*ast);
  NOS_ASSIGN(std::unique_ptr<const Plan> plan, Plan::Make(std::move(ast)));
  return std::unique_ptr<const Program>(new Program(std::move(plan), estimated_cost));
}

Evaluation Program::Evaluate(const Device& device, const EvaluateOptions& options) const {
  if (!device.error().empty()) return {false, device.error(), 0};
  thread_local Arena arena;
  thread_local std::vector<Slot> slots;
  arena.Reset();
  slots.assign(plan_->slot_count(), Slot());
  StepLimit::Reset();
  Frame frame(arena, device.maps(), slots, options.max_cost, options.interrupted);
  try {
    const Value value = plan_->root().Run(frame);
    return ToEvaluation(value, frame.cost());
  } catch (const Cancelled& cancelled) {
    return {false, cancelled.what(), frame.cost()};
  }
}

}  // namespace nos::cel
