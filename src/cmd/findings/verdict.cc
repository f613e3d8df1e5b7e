#include "cmd/findings/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace nos::cmd {

std::string_view VerdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::kOk:
      return "OK";
    case Verdict::kWarning:
      return "Warning";
    case Verdict::kFailed:
      return "Failed";
    case Verdict::kNotChecked:
      return "NotChecked";
  }
  return "";
}

void Findings::Ok(std::string code, std::string message, std::vector<std::string> objects) {
  all_.push_back(
      {topic_, std::move(code), Verdict::kOk, std::move(message), "", std::move(objects)});
}

void Findings::Warn(std::string code, std::string message, std::string remedy,
                    std::vector<std::string> objects) {
  all_.push_back({topic_, std::move(code), Verdict::kWarning, std::move(message), std::move(remedy),
                  std::move(objects)});
}

void Findings::Fail(std::string code, std::string message, std::string remedy,
                    std::vector<std::string> objects) {
  all_.push_back({topic_, std::move(code), Verdict::kFailed, std::move(message), std::move(remedy),
                  std::move(objects)});
}

void Findings::NotChecked(std::string code, std::string message, std::string remedy) {
  all_.push_back(
      {topic_, std::move(code), Verdict::kNotChecked, std::move(message), std::move(remedy)});
}

void Findings::Unread(std::string code, std::string_view what, const Status& error) {
  const bool forbidden = error.code() == Code::kPermission;
  NotChecked(std::move(code), fmt::format("{} cannot be read: {}", what, error.message()),
             forbidden ? fmt::format("run the command with the right to list {}", what) : "");
}

void Findings::FailIfAny(const std::string& code, std::vector<std::string> objects,
                         std::string failed, std::string remedy, std::string fine) {
  if (objects.empty()) return Ok(code, std::move(fine));
  Fail(code, std::move(failed), std::move(remedy), std::move(objects));
}

void Findings::WarnIfAny(const std::string& code, std::vector<std::string> objects,
                         std::string warning, std::string remedy, std::string fine) {
  if (objects.empty()) return Ok(code, std::move(fine));
  Warn(code, std::move(warning), std::move(remedy), std::move(objects));
}

std::string Count(size_t count, std::string_view singular) {
  return fmt::format("{} {}{}", count, singular, count == 1 ? "" : "s");
}

}  // namespace nos::cmd
