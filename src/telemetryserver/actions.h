// What a reader may have done beyond reading: asking what would happen to a pod, and creating it.
// The server of telemetry knows no cluster but by reports; who does implements this.
#pragma once

#include <string>

#include "codec/json.h"
#include "net/http.h"
#include "telemetryserver/reader.h"

namespace nos::telemetryserver {

struct ActionCall {
  const Reader& reader;
  const net::HttpRequest& request;
  std::string cluster;
  std::string pod;           // YAML or JSON, as it came
  std::string subject;       // set by who acts: "NAMESPACE/NAME", for the audit log
  bool only_cluster = true;  // nothing has come of any other
};

// Thread-safe. Errors are sentences for the reader; what the API server says is passed on. kInvalid
// (the pod), kPermission, kAlreadyExists, kUnimplemented (not set up here), kUnavailable,
// kDeadline.
class Actions {
 public:
  virtual ~Actions() = default;
  // What is set up for this reader; a right may still be missing in one namespace or another.
  struct Can {
    bool what_if = false, submit = false;
  };
  virtual Can Of(const Reader& reader) const = 0;
  // {"fits", "node", "would_cut", "would_evict", "text", "steps"}
  virtual Result<std::string> WhatIf(ActionCall& call) = 0;
  // {"namespace", "name"}
  virtual Result<std::string> Submit(ActionCall& call) = 0;
};

}  // namespace nos::telemetryserver
