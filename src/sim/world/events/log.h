// The events of a virtual world as lines, in order. Two runs from one seed give the same log. One
// thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace nos::sim {

class EventLog {
 public:
  using Sink = std::function<void(std::string_view line)>;

  EventLog(const Clock& clock, Time start) : clock_(clock), start_(start) {}

  // Appends a line such as "  12.350 node-1: pod a runs on 3g.20gb@4".
  void Note(std::string_view who, std::string_view what);
  // Also called with every line from now on.
  void SetSink(Sink sink) { sink_ = std::move(sink); }
  // The same, and with details (Detail).
  void SetSinkForDetails(Sink sink);
  // True if somebody reads details: they cost too much to be formatted in vain.
  bool TakesDetails() const { return takes_details_; }
  // For the sink only: the line is neither kept nor counted. REQUIRES: TakesDetails().
  void Detail(std::string_view who, std::string_view what) const { sink_(LineOf(who, what)); }

  // The last lines, at most kKept.
  const std::deque<std::string>& lines() const { return lines_; }
  uint64_t count() const { return count_; }
  // Hash of all lines ever noted, in order.
  uint64_t hash() const { return hash_; }

 private:
  static constexpr size_t kKept = 4000;
  std::string LineOf(std::string_view who, std::string_view what) const;

  const Clock& clock_;
  Time start_;
  Sink sink_;
  bool takes_details_ = false;
  std::deque<std::string> lines_;
  uint64_t count_ = 0;
  uint64_t hash_ = 0xcbf29ce484222325ULL;  // FNV-1a, 64 bit
};

}  // namespace nos::sim
