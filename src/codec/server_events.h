// Server-sent events as they come over a connection, piece by piece.
//
//   ServerEventReader reader(kMostBytes);
//   NOS_RETURN_IF_ERROR(reader.Take(piece, [&](ServerEvent event) { ... }));
//
// Source: HTML Living Standard, "Server-sent events", interpreting an event stream. What it says of
// reconnection times is left out: who reads has a pace of its own.
#pragma once

#include <string>
#include <string_view>

#include "base/function_ref.h"
#include "base/status.h"

namespace nos {

struct ServerEvent {
  std::string name = "message";
  std::string id;  // the last one that was told, with this event or before
  std::string data;
};

class ServerEventReader {
 public:
  // `most`: bytes of a line, and of an event.
  explicit ServerEventReader(size_t most) : most_(most) {}

  // Visits the events that are complete with this piece. Error: kExhausted: one is too large.
  Status Take(std::string_view piece, FunctionRef<void(ServerEvent)> visit);

 private:
  void Line(std::string_view line, FunctionRef<void(ServerEvent)> visit);

  const size_t most_;
  std::string rest_;  // of a line
  bool begun_ = false, after_return_ = false;
  std::string name_, id_, data_;
};

}  // namespace nos
