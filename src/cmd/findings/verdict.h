// Findings of a check: one statement each, with a verdict and a remedy. Plain values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace nos::cmd {

enum class Verdict {
  kOk,
  kWarning,     // works, but not as one may expect; or may fail later
  kFailed,      // does not work
  kNotChecked,  // it could not be looked at, or is not installed; the message has the reason
};
// "OK", "Warning", "Failed", "NotChecked".
std::string_view VerdictName(Verdict verdict);

struct Finding {
  std::string topic;  // group in the output: "Nodes"
  std::string code;   // stable, for programs: "AgentOnNode"
  Verdict verdict = Verdict::kOk;
  std::string message;  // the things looked at, and their state
  std::string remedy{};
  std::vector<std::string> objects{};  // names of the affected objects, all of them
};

// Collects the findings of one topic.
class Findings {
 public:
  void Begin(std::string topic) { topic_ = std::move(topic); }
  void Ok(std::string code, std::string message, std::vector<std::string> objects = {});
  void Warn(std::string code, std::string message, std::string remedy,
            std::vector<std::string> objects = {});
  void Fail(std::string code, std::string message, std::string remedy,
            std::vector<std::string> objects = {});
  void NotChecked(std::string code, std::string message, std::string remedy = "");
  // Objects of a kind could not be read: not checked, with the error and, if the right is missing,
  // the remedy.
  void Unread(std::string code, std::string_view what, const Status& error);
  // Adds `failed` with the objects if there are any; else an OK with `fine`.
  void FailIfAny(const std::string& code, std::vector<std::string> objects, std::string failed,
                 std::string remedy, std::string fine);
  void WarnIfAny(const std::string& code, std::vector<std::string> objects, std::string warning,
                 std::string remedy, std::string fine);

  const std::vector<Finding>& all() const { return all_; }

 private:
  std::string topic_;
  std::vector<Finding> all_;
};

// "3 nodes", "1 node".
std::string Count(size_t count, std::string_view singular);

}  // namespace nos::cmd
