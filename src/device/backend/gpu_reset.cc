#include "device/backend/gpu_reset.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>

#include "base/text.h"
#include "device/backend/driver_program.h"

namespace nos::device {
namespace {

constexpr size_t kMaxSaid = 400;  // bytes of an error text for operators

// The UUID becomes a program argument and comes from the driver, so it is validated.
bool IsGpuUuid(const std::string& uuid) {
  return uuid.starts_with("GPU-") && uuid.size() < 64 &&
         std::ranges::all_of(
             uuid,
             [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-'; });
}

Code CodeOf(const std::string& how) {
  if (how == "exit status 3") return Code::kUnimplemented;
  return how == "exit status 4" ? Code::kPermission : Code::kUnavailable;
}

// Replaces control characters, so that the text fits one line.
std::string OneLine(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  }
  return Shortened(text, kMaxSaid);
}

}  // namespace

Status ResetGpu(const GpuResetOptions& options, const std::string& uuid) {
  if (!IsGpuUuid(uuid)) return Invalid(fmt::format("'{}' is not the UUID of a GPU", uuid));
  const Program program =
      DriverProgram({options.program, "--gpu-reset", "-i", uuid}, OwnEnvironment());
  NOS_ASSIGN(const ProgramEnd end, RunProgram(program, {.within = options.within}));
  if (end.how == "exit status 0") return Status::Ok();
  return {CodeOf(end.how), fmt::format("{} --gpu-reset -i {} failed ({}): {}", options.program,
                                       uuid, end.how, OneLine(end.output))};
}

}  // namespace nos::device
