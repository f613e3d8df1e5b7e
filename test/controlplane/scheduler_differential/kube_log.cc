#include "scheduler_differential/kube_log.h"

#include <charconv>
#include <iterator>
#include <string_view>
#include <utility>

namespace nos::differential {
namespace {

// The value of `name=value` or `name="value"` in a line, or "".
std::string_view Field(std::string_view line, std::string_view name) {
  const std::string start = " " + std::string(name) + "=";
  size_t at = line.find(start);
  if (at == std::string_view::npos) return {};
  at += start.size();
  const bool quoted = at < line.size() && line[at] == '"';
  if (quoted) ++at;
  return line.substr(at, line.find(quoted ? '"' : ' ', at) - at);
}

int64_t Number(std::string_view text) {
  int64_t number = 0;
  (void)std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace

void KubeLog::Read() {
  file_.clear();
  std::string text = std::exchange(rest_, {});
  text.append(std::istreambuf_iterator<char>(file_), {});
  size_t begin = 0;
  for (size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    const std::string pod(Field(line, "pod"));
    if (pod.empty() || line.find(" schedule_one.go:") == std::string_view::npos) continue;
    KubeScores& said = pods_[pod];
    if (line.find("\"Attempting to schedule pod\"") != std::string_view::npos) said = {};
    said.lines.emplace_back(line);
    if (line.find("\"Plugin scored node for pod\"") != std::string_view::npos) {
      said.scores[std::string(Field(line, "node"))][std::string(Field(line, "plugin"))] =
          Number(Field(line, "score"));
    } else if (const std::string_view feasible = Field(line, "feasibleNodes"); !feasible.empty()) {
      said.feasible = static_cast<int>(Number(feasible));
    }
  }
  rest_ = text.substr(begin);
}

KubeScores KubeLog::Of(const std::string& pod) {
  Read();
  KubeScores said = std::move(pods_[pod]);
  pods_.clear();
  return said;
}

}  // namespace nos::differential
