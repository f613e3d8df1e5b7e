// The state of one evaluation.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "cel/values/arena.h"
#include "cel/values/cancelled.h"
#include "cel/values/map.h"

namespace nos::cel {

class Node;

// A local variable. The accumulator of a comprehension gets its first value when it is first read.
struct Slot {
  Value value;
  const Node* init = nullptr;
  bool ready = false;
  bool growing = false;  // it began as an empty list or map
};

class Frame {
 public:
  Frame(Arena& arena, const MapValue& device, std::span<Slot> slots, uint64_t max_cost,
        const std::atomic<bool>* interrupted)
      : arena_(arena),
        device_(Value::Of(&device)),
        slots_(slots),
        max_cost_(max_cost),
        interrupted_(interrupted) {}

  Arena& arena() { return arena_; }
  const Value& device() const { return device_; }
  Slot& slot(size_t index) { return slots_[index]; }
  uint64_t cost() const { return cost_; }

  // Throws Cancelled above the limit. The cost may wrap around below zero, as upstream.
  void Charge(uint64_t cost) {
    cost_ += cost;
    if (cost_ > max_cost_)
      throw Cancelled(Cancelled::Cause::kLimit, "operation cancelled: actual cost limit exceeded");
  }

  // After each iteration.
  void CheckInterrupt() {
    constexpr uint64_t kFrequency = 100;
    if (interrupted_ != nullptr && ++iterations_ % kFrequency == 0 &&
        interrupted_->load(std::memory_order_relaxed)) {
      throw Cancelled(Cancelled::Cause::kInterrupted, "operation interrupted");
    }
  }

 private:
  Arena& arena_;
  Value device_;
  std::span<Slot> slots_;
  uint64_t cost_ = 0;
  uint64_t max_cost_;
  uint64_t iterations_ = 0;
  const std::atomic<bool>* interrupted_;
};

}  // namespace nos::cel
