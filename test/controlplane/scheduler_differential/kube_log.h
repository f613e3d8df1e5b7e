// What kube-scheduler says in its log while it decides, with --vmodule=schedule_one=10: more than
// the API shows.
#pragma once

#include <cstdint>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace nos::differential {

struct KubeScores {
  // node -> plugin -> weighted score; empty when less than two nodes were feasible.
  std::map<std::string, std::map<std::string, int64_t>> scores;
  std::optional<int> feasible;  // when the pod was bound
  std::vector<std::string> lines;
};

class KubeLog {
 public:
  explicit KubeLog(const std::string& path) : file_(path) {}
  // What it has said of the last attempt with this pod ("ns/name"), up to now.
  KubeScores Of(const std::string& pod);

 private:
  void Read();

  std::ifstream file_;
  std::string rest_;  // of a line that is not whole yet
  std::map<std::string, KubeScores> pods_;
};

}  // namespace nos::differential
