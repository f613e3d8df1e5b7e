// A value that copies share until one of them changes it. For plugin data in CycleState, which
// callers copy.
//
//   struct State { CopyOnWrite<Counts> counts; };
//   state.counts->Of("a");           // reads
//   state.counts.Change().Add("a");  // copies first if another state shares it
#pragma once

#include <memory>
#include <utility>

namespace nos::scheduling {

template <typename T>
class CopyOnWrite {
 public:
  explicit CopyOnWrite(T value) : value_(std::make_shared<T>(std::move(value))) {}

  const T& operator*() const { return *value_; }
  const T* operator->() const { return value_.get(); }
  T& Change() {
    if (value_.use_count() > 1) value_ = std::make_shared<T>(*value_);
    return *value_;
  }

 private:
  std::shared_ptr<T> value_;
};

}  // namespace nos::scheduling
