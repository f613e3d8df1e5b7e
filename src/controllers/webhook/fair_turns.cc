#include "controllers/webhook/fair_turns.h"

#include <algorithm>
#include <utility>

namespace nos::controllers {

std::unique_ptr<FairTurns::Turn> FairTurns::Take(const std::string& group) {
  std::unique_lock lock(mutex_);
  const auto known = groups_.find(group);
  if (known != groups_.end() && known->second.inside >= max_of_one_) return nullptr;
  if (inside_ >= most_ && !Displace(group)) return nullptr;
  Group& own = groups_[group];
  ++inside_;
  ++own.inside;
  if (std::exchange(taken_, true)) {
    Waiter waiter;
    own.waiting.push_back(&waiter);
    waiter.called.wait(lock, [&] { return waiter.has_turn || waiter.gives_way; });
    if (waiter.gives_way) return nullptr;
  }
  return std::make_unique<Turn>(*this, group);
}

bool FairTurns::Displace(const std::string& group) {
  const auto own = groups_.find(group);
  const size_t have = own == groups_.end() ? 0 : own->second.inside;
  const auto most = std::ranges::max_element(
      groups_, {}, [](const auto& of) { return of.second.waiting.empty() ? 0 : of.second.inside; });
  if (most == groups_.end() || most->second.waiting.empty() || most->second.inside <= have + 1) {
    return false;
  }
  Waiter* const last = most->second.waiting.back();
  most->second.waiting.pop_back();
  last->gives_way = true;
  last->called.notify_one();
  Leave(most->first);
  return true;
}

size_t FairTurns::inside() const {
  const std::scoped_lock lock(mutex_);
  return inside_;
}

void FairTurns::Leave(const std::string& group) {
  --inside_;
  const auto own = groups_.find(group);
  if (--own->second.inside == 0) groups_.erase(own);
}

void FairTurns::End(const std::string& group) {
  const std::scoped_lock lock(mutex_);
  Leave(group);
  CallNext(group);
}

// The first caller of the next group in the order of names.
void FairTurns::CallNext(const std::string& after) {
  taken_ = false;
  auto next = groups_.upper_bound(after);
  for (size_t i = 0; i < groups_.size(); ++i, ++next) {
    if (next == groups_.end()) next = groups_.begin();
    std::deque<Waiter*>& waiting = next->second.waiting;
    if (waiting.empty()) continue;
    taken_ = true;
    waiting.front()->has_turn = true;
    waiting.front()->called.notify_one();
    waiting.pop_front();
    return;
  }
}

}  // namespace nos::controllers
