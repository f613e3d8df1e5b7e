// The invariants that a virtual world has violated, as text. One thread.
#pragma once

#include <string>
#include <vector>

#include "sim/world/events/log.h"

namespace nos::sim {

class Violations {
 public:
  explicit Violations(EventLog& log) : log_(log) {}

  // Keeps and logs the first kMax, and drops the others: one cause often has hundreds of effects.
  void Add(std::string what);
  void Add(std::vector<std::string> problems) {
    for (std::string& problem : problems) Add(std::move(problem));
  }
  const std::vector<std::string>& texts() const { return texts_; }

 private:
  static constexpr size_t kMax = 20;

  EventLog& log_;
  std::vector<std::string> texts_;
};

inline void Violations::Add(std::string what) {
  if (texts_.size() >= kMax) return;
  log_.Note("VIOLATION", what);
  texts_.push_back(std::move(what));
}

}  // namespace nos::sim
