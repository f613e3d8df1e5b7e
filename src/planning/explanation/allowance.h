// A budget of work, counted in steps so that the same input gives the same result. It shrinks when
// the time limit expires.
//
//   Allowance allowance(50'000'000, 5'000'000, out_of_time);
//   if (!allowance.Spend(10)) return;   // budget exhausted
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>

namespace nos::planning {

class Allowance {
 public:
  // `late`: maximum number of steps left once `out_of_time` returns true. `out_of_time` must
  // outlive this object.
  Allowance(int64_t steps, int64_t late, const std::function<bool()>& out_of_time)
      : left_(steps), late_(late), out_of_time_(out_of_time) {
    Ask();
  }

  // False if the budget is exhausted.
  bool Spend(int64_t steps) {
    left_ -= steps;
    until_asked_ -= steps;
    if (until_asked_ <= 0) Ask();
    return left_ > 0;
  }
  bool spent() const { return left_ <= 0; }

 private:
  static constexpr int64_t kAskEvery = 100'000;

  void Ask() {
    until_asked_ = kAskEvery;
    if (is_late_ || !out_of_time_()) return;
    is_late_ = true;
    left_ = std::min(left_, late_);
  }

  int64_t left_, late_, until_asked_ = kAskEvery;
  const std::function<bool()>& out_of_time_;
  bool is_late_ = false;
};

}  // namespace nos::planning
