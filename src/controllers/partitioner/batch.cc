#include "controllers/partitioner/batch.h"

#include <algorithm>
#include <utility>

namespace nos::controllers {

void Batch::Update(std::set<std::string> waiting, Time now) {
  bool fresh = false;
  for (const std::string& pod : waiting) {
    if (planned_.contains(pod)) continue;
    fresh = true;
    if (!waiting_.contains(pod)) last_ = now;
  }
  if (!fresh) {
    first_.reset();
    last_.reset();
  } else if (!first_) {
    first_ = last_;
  }
  std::erase_if(planned_, [&](const std::string& pod) { return !waiting.contains(pod); });
  waiting_ = std::move(waiting);
}

Time Batch::Due(Time now) const {
  const Time joined =
      first_ && last_ ? std::min(*last_ + times_.idle, *first_ + times_.timeout) : now;
  return std::max(joined, rest_until_);
}

void Batch::Planned(Time begin, Time end) {
  constexpr int kRestFactor = 10;
  planned_ = waiting_;
  first_.reset();
  last_.reset();
  rest_until_ = end + std::max(times_.idle, (end - begin) * kRestFactor);
}

}  // namespace nos::controllers
