// Parses kube-scheduler's log with --vmodule=schedule_one=10, which has more details than the API.
#pragma once

#include <cstdint>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace nos::differential {

struct KubeScores {
  // node -> plugin -> weighted score; empty if less than two nodes were feasible
  std::map<std::string, std::map<std::string, int64_t>> scores;
  std::optional<int> feasible;  // for a bound pod
  std::vector<std::string> lines;
};

class KubeLog {
 public:
  explicit KubeLog(const std::string& path) : file_(path) {}
  // The log of the last attempt for this pod ("ns/name"), up to now.
  KubeScores Of(const std::string& pod);

 private:
  void Read();

  std::ifstream file_;
  std::string rest_;  // the incomplete last line
  std::map<std::string, KubeScores> pods_;
};

}  // namespace nos::differential
