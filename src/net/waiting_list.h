// The connections that wait for their client, from the one that has waited longest: for a request,
// for the rest of one that has begun, or to be closed. Whoever is not in here any more when that
// comes has been evicted and ends: so an eviction never costs a request that is being answered, and
// a client that is slow none that is not.
//
//   ticket = waiting.Enter(weak_from_this(), has_begun);
//   if (!waiting.Leave(ticket)) Close();
//
// Any thread. Internal to this room.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

namespace nos::net {

template <typename Connection>
class WaitingList {
 public:
  using Ticket = uint64_t;

  // `has_begun`: a part of a request is there.
  Ticket Enter(std::weak_ptr<Connection> connection, bool has_begun) {
    const std::scoped_lock lock(mutex_);
    waiting_.emplace(++last_, Entry{std::move(connection), has_begun});
    return last_;
  }
  // False: evicted meanwhile.
  bool Leave(Ticket ticket) {
    const std::scoped_lock lock(mutex_);
    return waiting_.erase(ticket) > 0;
  }
  // Null when nobody waits.
  std::shared_ptr<Connection> Evict() { return EvictFirst(false); }
  // Null when nobody waits for the rest of a request.
  std::shared_ptr<Connection> EvictBegun() { return EvictFirst(true); }

 private:
  struct Entry {
    std::weak_ptr<Connection> connection;
    bool has_begun = false;
  };
  std::shared_ptr<Connection> EvictFirst(bool only_begun) {
    const std::scoped_lock lock(mutex_);
    const auto found = std::ranges::find_if(
        waiting_, [&](const auto& waiting) { return waiting.second.has_begun || !only_begun; });
    if (found == waiting_.end()) return nullptr;
    return waiting_.extract(found).mapped().connection.lock();
  }

  std::mutex mutex_;
  std::map<Ticket, Entry> waiting_;
  Ticket last_ = 0;
};

}  // namespace nos::net
