// The connections that wait for their client (for a request, for the rest of one, or to be closed),
// longest wait first. A connection that is no longer listed when its client's data arrives has been
// evicted and closes. An eviction therefore never hits a request that is being answered, only
// clients that are slow to send.
//
//   ticket = waiting.Enter(weak_from_this(), has_begun);
//   if (!waiting.Leave(ticket)) Close();
//
// Thread-safe. Internal to this library.
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

  // `has_begun`: part of a request has arrived.
  Ticket Enter(std::weak_ptr<Connection> connection, bool has_begun) {
    const std::scoped_lock lock(mutex_);
    waiting_.emplace(++last_, Entry{std::move(connection), has_begun});
    return last_;
  }
  // False: the connection was evicted meanwhile.
  bool Leave(Ticket ticket) {
    const std::scoped_lock lock(mutex_);
    return waiting_.erase(ticket) > 0;
  }
  // Null if no connection waits.
  std::shared_ptr<Connection> Evict() { return EvictFirst(false); }
  // Null if no connection waits for the rest of a request.
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
