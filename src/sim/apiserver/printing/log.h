// The log of a simulated container: no program runs in it, so the log says what a reader can learn
// about the container instead, in particular which devices it has.
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "sim/apiserver/objects/reply.h"

namespace nos::sim {

struct LogLine {
  Time at{};
  std::string text;
};

// A container's log and whether more lines may come.
struct ContainerLog {
  std::vector<LogLine> lines;  // oldest first
  bool ended = false;
};

// The parameters of a request for pods/<name>/log.
struct LogOptions {
  std::string container;  // "": the only one
  bool follow = false, previous = false, timestamps = false;
  std::optional<int64_t> tail, limit_bytes;
  std::optional<Time> since;
};
// Refusal: 400, 422.
Outcome<LogOptions> ParseLogOptions(const kube::ApiRequest& request, Time now);

// Refusal: 400, in the words of the real server: which container, or it has not started. A pod
// without a node has an empty log, as there.
Outcome<ContainerLog> LogOf(const Json& pod, const LogOptions& options);

// The lines from `first` on, as text. `tail` is not applied.
std::string LogText(const ContainerLog& log, size_t first, const LogOptions& options);
// The first line that `tail` and `since` leave.
size_t FirstLine(const ContainerLog& log, const LogOptions& options);

}  // namespace nos::sim
