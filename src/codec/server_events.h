// Parses server-sent events that arrive over a connection piece by piece.
//
//   ServerEventReader reader(kMaxBytes);
//   NOS_RETURN_IF_ERROR(reader.Take(piece, [&](ServerEvent event) { ... }));
//
// Source: HTML Living Standard, "Server-sent events", interpreting an event stream. Its
// reconnection times are ignored: the caller has its own back-off.
#pragma once

#include <string>
#include <string_view>

#include "base/function_ref.h"
#include "base/status.h"

namespace nos {

struct ServerEvent {
  std::string name = "message";
  std::string id;  // the last id received, with this event or an earlier one
  std::string data;
};

class ServerEventReader {
 public:
  // `most`: limit in bytes for a line and for an event.
  explicit ServerEventReader(size_t most) : most_(most) {}

  // Visits the events that this piece completes. Error: kExhausted: an event is too large.
  Status Take(std::string_view piece, FunctionRef<void(ServerEvent)> visit);

 private:
  void Line(std::string_view line, FunctionRef<void(ServerEvent)> visit);

  const size_t most_;
  std::string rest_;  // the incomplete line
  bool begun_ = false, after_return_ = false;
  std::string name_, id_, data_;
};

}  // namespace nos
