// How far followers have read the journal or events; each is written with the next transaction.
//
//   FollowerPositions positions(store, {"remoteWrite"}, {"webhook"});
//   NOS_RETURN_IF_ERROR(positions.Load());
//   positions.Advance("remoteWrite", rows.back().id);   // from the follower's thread
//   NOS_ASSIGN(int64_t held, positions.Write());   // within a transaction
//
// Thread-safe; Load and Write from the thread that writes the store.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "telemetryserver/store.h"

namespace nos::telemetryserver {

class FollowerPositions {
 public:
  // `store` must outlive this object.
  FollowerPositions(Store& store, std::vector<std::string> of_journal,
                    std::vector<std::string> of_events)
      : store_(store), of_journal_(std::move(of_journal)), of_events_(std::move(of_events)) {}

  // At the start.
  Status Load();
  // REQUIRES for both: a follower named in the constructor.
  int64_t Of(const std::string& follower) const;
  void Advance(const std::string& follower, int64_t id);
  // Returns the journal position that all followers of the journal have reached.
  Result<int64_t> Write() const;

 private:
  Store& store_;
  const std::vector<std::string> of_journal_, of_events_;
  mutable std::mutex mutex_;
  std::map<std::string, int64_t> positions_;
};

}  // namespace nos::telemetryserver
