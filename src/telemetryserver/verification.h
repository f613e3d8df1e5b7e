// Looks for damage in a store's file, also while a server writes it.
//
//   NOS_ASSIGN(const std::vector<StoreCheck> checks, VerifyStore("telemetry.db", {}));
//   if (WorstOf(checks) == Harm::kFile) ... no server can use it ...
//
// Changes nothing. Reads the whole file.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace nos::telemetryserver {

enum class Harm {
  kNone,
  kRows,  // some rows are lost: the server leaves them out
  kFile,  // the server cannot use the file
};

// Result of one check.
struct StoreCheck {
  std::string code;  // stable, for programs: "JournalRows"
  Harm harm = Harm::kNone;
  std::string message;
  std::string remedy{};
  std::vector<std::string> objects{};  // what is damaged, at most kMaxDamagedObjects
};
inline constexpr size_t kMaxDamagedObjects = 100;

// Called every few milliseconds with the current check and the rows that it has read. False: stop.
using VerifyProgress = std::function<bool(std::string_view code, int64_t rows)>;

// Errors: kNotFound (no such file), kUnavailable (it cannot be opened, or stopped).
Result<std::vector<StoreCheck>> VerifyStore(const std::string& path,
                                            const VerifyProgress& progress);

Harm WorstOf(const std::vector<StoreCheck>& checks);

}  // namespace nos::telemetryserver
