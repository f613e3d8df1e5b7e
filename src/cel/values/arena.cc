#include "cel/values/arena.h"

#include <algorithm>

#include "cel/values/cancelled.h"

namespace nos::cel {
namespace {

constexpr size_t kFirstBlock = 4096;
constexpr size_t kLargestBlock = size_t{1} << 20;

}  // namespace

void Arena::Grow(size_t bytes) {
  const size_t step = std::clamp(used_, kFirstBlock, kLargestBlock);
  const size_t size = std::max(step, bytes);
  if (size > limit_ || used_ > limit_ - size)
    throw Cancelled(Cancelled::Cause::kLimit, "memory limit exceeded");
  blocks_.push_back({std::make_unique_for_overwrite<char[]>(size), size});
  used_ += size;
  next_ = blocks_.back().bytes.get();
  end_ = next_ + size;
}

void Arena::Reset() {
  if (blocks_.empty()) return;
  blocks_.resize(1);
  used_ = blocks_.front().size;
  next_ = blocks_.front().bytes.get();
  end_ = next_ + used_;
}

}  // namespace nos::cel
