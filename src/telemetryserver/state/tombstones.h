// Tombstones: times of the last full lists and of removals, by kind, so that late records do not
// restore removed objects.
//
//   gone.List("pod", at);
//   if (record.at < gone.Since("pod", uid)) ...  // an unknown pod: removed since
//
// Pure: no input or output. Bounded: for each kind the oldest removals are dropped first.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "telemetry/records.h"

namespace nos::telemetryserver {

class Tombstones {
 public:
  static constexpr size_t kMaxRemovalsPerKind = 1000;  // removals per kind

  void List(std::string_view what, telemetry::Millis at);
  void Remove(std::string_view what, const std::string& key, telemetry::Millis at);
  // Limits all times to `now`, after the clock was ahead.
  void NotAfter(telemetry::Millis now);
  // The later of removal and last list; -1: neither is known.
  telemetry::Millis Since(std::string_view what, const std::string& key) const;
  telemetry::Millis ListedAt(std::string_view what) const;

  // Record of checkpoints and of changes, made at `at`: {"kind":"gone", "at":.., "listed":[[what,
  // at]..], "removed":[[what, key, at]..]}. Reporters cannot send such a record.
  Json ToJson(telemetry::Millis at) const;
  // True if `record` is such a record. Read adds its content.
  static bool IsRecord(const Json& record);
  void Read(const Json& record);

 private:
  struct Kind {
    telemetry::Millis listed = -1;
    std::map<std::string, telemetry::Millis> removed;           // by key
    std::set<std::pair<telemetry::Millis, std::string>> order;  // the same, ordered by time
  };
  const Kind* Find(std::string_view what) const;
  Kind& Of(std::string_view what);
  static void Forget(Kind& kind);

  std::map<std::string, Kind, std::less<>> kinds_;
};

}  // namespace nos::telemetryserver
