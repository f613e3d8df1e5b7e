// Copies of the store: a backup while a server writes it, and a restore while none does.
//
//   NOS_ASSIGN(const StoreFacts copy, BackUp("telemetry.db", "copy.db", {}));
//   NOS_ASSIGN(const Restored restored, Restore("copy.db", "telemetry.db", {.stamp = "1"}));
//
// The one file has all that a server needs to go on: journal, history, sequences of reporters,
// positions of exports. Either file is complete on disk or not there, also after a loss of power.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "telemetryserver/verification.h"

namespace nos::telemetryserver {

// Called every few milliseconds with the bytes written and their expected number. False: stop.
using CopyProgress = std::function<bool(int64_t done, int64_t total)>;

struct StoreFacts {
  int64_t version = 0;  // of the schema
  int64_t bytes = 0;
};

struct BackupOptions {
  bool replace = false;  // an existing file
  CopyProgress progress{};
};

// Copies the store as of one moment. Errors: kNotFound (no store), kAlreadyExists, kInvalid (the
// store is damaged), kExhausted (disk full), kUnavailable (disk error, or stopped).
Result<StoreFacts> BackUp(const std::string& store, const std::string& target,
                          const BackupOptions& options);

struct RestoreOptions {
  std::string stamp;  // for the name of the former store
  CopyProgress copying{};
  VerifyProgress verifying{};
};

struct Restored {
  StoreFacts facts;
  std::string previous;             // where the former store is; "": there was none
  std::vector<StoreCheck> damaged;  // rows without which the server goes on
};

// Puts a copy of `backup` in the store's place, once it is verified; the former store is kept as
// STORE.before-STAMP. It is not migrated: the server does that when it starts. Errors: kUnavailable
// (a server uses the store; disk error; stopped), kNotFound, kInvalid (damaged, of a newer version,
// or no store), kExhausted.
Result<Restored> Restore(const std::string& backup, const std::string& store,
                         const RestoreOptions& options);

}  // namespace nos::telemetryserver
