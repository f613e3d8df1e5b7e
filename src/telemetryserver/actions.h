// Actions of readers: ask where a pod would be placed, and create it. The telemetry server itself
// knows clusters only from reports; a component with access to a cluster implements this interface.
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
  std::string pod;           // YAML or JSON, as received
  std::string subject;       // set by the implementation: "NAMESPACE/NAME", for the audit log
  bool only_cluster = true;  // no other cluster has reported
};

// Thread-safe. Errors are sentences for the reader; errors of the API server are passed on.
// kInvalid (the pod), kPermission, kAlreadyExists, kUnimplemented (not configured), kUnavailable,
// kDeadline.
class Actions {
 public:
  virtual ~Actions() = default;
  // Actions configured for this reader; rights in a namespace may still be missing.
  struct Can {
    bool what_if = false, submit = false;
  };
  virtual Can Of(const Reader& reader) const = 0;
  // {"fits", "node", "would_partition", "would_evict", "text", "steps", "explanation"}
  virtual Result<std::string> WhatIf(ActionCall& call) = 0;
  // {"namespace", "name"}
  virtual Result<std::string> Submit(ActionCall& call) = 0;
};

}  // namespace nos::telemetryserver
