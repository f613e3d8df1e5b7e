#include "cmd/findings/report.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/table.h"
#include "base/text.h"

namespace nos::cmd {
namespace {

constexpr size_t kNamesInText = 5, kNamesInJson = 100;
constexpr size_t kMaxName = 63, kMaxMessage = 600;
constexpr size_t kIndent = 14;  // of the words behind a verdict

std::string_view Label(Verdict verdict) {
  switch (verdict) {
    case Verdict::kOk:
      return "OK";
    case Verdict::kWarning:
      return "WARNING";
    case Verdict::kFailed:
      return "FAILED";
    case Verdict::kNotChecked:
      return "NOT CHECKED";
  }
  return "";
}

// Appends the words, broken at blanks. The first line starts at the end of `text`, further ones
// after `indent` blanks. A word that is longer than a line is truncated.
void AppendWrapped(std::string& text, std::string_view words, size_t indent, size_t width) {
  size_t column = indent;
  bool first = true;
  for (const std::string_view word : Split(words, ' ')) {
    if (word.empty()) continue;
    const std::string shown = Truncate(word, width - indent);
    const size_t wide = DisplayWidth(shown);
    if (!first && column + 1 + wide > width) {
      text += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (!first) {
      text += ' ';
      ++column;
    }
    text += shown;
    column += wide;
    first = false;
  }
  text += "\n";
}

std::string Names(const std::vector<std::string>& objects) {
  std::vector<std::string> shown;
  for (const std::string& name : objects) {
    if (shown.size() == kNamesInText) break;
    shown.push_back(Truncate(Printable(name), kMaxName));
  }
  std::string text = Join(shown, ", ");
  if (objects.size() > shown.size()) {
    text += fmt::format(" and {} more", objects.size() - shown.size());
  }
  return text;
}

struct Summary {
  size_t ok = 0, warnings = 0, failed = 0, not_checked = 0;
};
Summary Summarize(const std::vector<Finding>& findings) {
  const auto count = [&](Verdict verdict) {
    return static_cast<size_t>(std::ranges::count(findings, verdict, &Finding::verdict));
  };
  return {count(Verdict::kOk), count(Verdict::kWarning), count(Verdict::kFailed),
          count(Verdict::kNotChecked)};
}

void AppendFinding(std::string& text, const Finding& finding, size_t width) {
  text += fmt::format("{:<{}}", Label(finding.verdict), kIndent);
  std::string words =
      fmt::format("{}: {}", finding.code, Printable(Shortened(finding.message, kMaxMessage)));
  if (!finding.objects.empty()) words += ": " + Names(finding.objects);
  AppendWrapped(text, words, kIndent, width);
  if (finding.remedy.empty()) return;
  text += std::string(kIndent, ' ') + "-> ";
  AppendWrapped(text, Printable(Shortened(finding.remedy, kMaxMessage)), kIndent + 3, width);
}

}  // namespace

std::string FindingsText(const std::vector<Finding>& findings, size_t width) {
  std::string text, topic;
  for (const Finding& finding : findings) {
    if (finding.topic != topic) {
      text += (text.empty() ? "" : "\n") + finding.topic + "\n";
      topic = finding.topic;
    }
    AppendFinding(text, finding, width);
  }
  const Summary sum = Summarize(findings);
  return text + fmt::format("\n{} OK, {}, {} failed, {} not checked\n", sum.ok,
                            Count(sum.warnings, "warning"), sum.failed, sum.not_checked);
}

Json FindingsJson(const std::vector<Finding>& findings) {
  JsonArray checks;
  for (const Finding& finding : findings) {
    JsonArray objects;
    for (const std::string& name : finding.objects) {
      if (objects.size() == kNamesInJson) break;
      objects.emplace_back(name);
    }
    checks.push_back(JsonObject{{"topic", finding.topic},
                                {"code", finding.code},
                                {"verdict", VerdictName(finding.verdict)},
                                {"message", finding.message},
                                {"remedy", finding.remedy},
                                {"objects", std::move(objects)},
                                {"objectCount", finding.objects.size()}});
  }
  const Summary sum = Summarize(findings);
  return JsonObject{{"checks", std::move(checks)},
                    {"summary", JsonObject{{"ok", sum.ok},
                                           {"warnings", sum.warnings},
                                           {"failed", sum.failed},
                                           {"notChecked", sum.not_checked}}}};
}

int FindingsExitCode(const std::vector<Finding>& findings) {
  return Summarize(findings).failed > 0 ? 1 : 0;
}

}  // namespace nos::cmd
