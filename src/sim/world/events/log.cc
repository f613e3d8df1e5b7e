#include "sim/world/events/log.h"

#include <fmt/format.h>

#include <utility>

namespace nos::sim {

std::string EventLog::LineOf(std::string_view who, std::string_view what) const {
  return fmt::format("{:>9.3f} {}: {}", ToSeconds(clock_.Now() - start_), who, what);
}

void EventLog::SetSinkForDetails(Sink sink) {
  takes_details_ = sink != nullptr;
  sink_ = std::move(sink);
}

void EventLog::Note(std::string_view who, std::string_view what) {
  std::string line = LineOf(who, what);
  for (const char c : line) {
    hash_ = (hash_ ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  }
  ++count_;
  if (sink_) sink_(line);
  lines_.push_back(std::move(line));
  if (lines_.size() > kKept) lines_.pop_front();
}

}  // namespace nos::sim
