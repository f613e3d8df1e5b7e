// What is there no more, so that who tells of it late does not bring it back: when all that there
// are were listed last, and what has been removed since then, by kind.
//
//   gone.List("pod", at);
//   if (record.at < gone.Since("pod", uid)) ...  // of a pod that is not known: it has gone since
//
// Pure. Bounded: of each kind the removals that are longest ago are forgotten first.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "telemetry/records.h"

namespace nos::telemetryserver {

class Gone {
 public:
  static constexpr size_t kMost = 1000;  // removals of a kind

  void List(std::string_view what, telemetry::Millis at);
  void Remove(std::string_view what, const std::string& key, telemetry::Millis at);
  // What was told for later than that is of that time: the clock had been ahead.
  void NotAfter(telemetry::Millis now);
  // The latest of both; -1: neither is known.
  telemetry::Millis Since(std::string_view what, const std::string& key) const;
  telemetry::Millis ListedAt(std::string_view what) const;

  // A record of checkpoints and of changes, made at `at`: {"kind":"gone", "at":.., "listed":[[what,
  // at]..], "removed":[[what, key, at]..]}. Others that tell such a record are not believed.
  Json ToJson(telemetry::Millis at) const;
  // Whether `record` is one. Adds it to what is known.
  static bool IsRecord(const Json& record);
  void Read(const Json& record);

 private:
  struct Kind {
    telemetry::Millis listed = -1;
    std::map<std::string, telemetry::Millis> removed;           // by key
    std::set<std::pair<telemetry::Millis, std::string>> order;  // the same
  };
  const Kind* Find(std::string_view what) const;
  Kind& Of(std::string_view what);
  static void Forget(Kind& kind);

  std::map<std::string, Kind, std::less<>> kinds_;
};

}  // namespace nos::telemetryserver
