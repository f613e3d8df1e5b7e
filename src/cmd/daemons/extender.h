// nos scheduler --extender: answers a kube-scheduler's extender calls for GPU pods, over TLS.
#pragma once

#include <string>

#include "base/status.h"
#include "cmd/daemon/scheduler_file.h"
#include "gpu/catalogue.h"

namespace nos::cmd {

struct ExtenderFlags {
  std::string address;  // "HOST:PORT" or ":PORT"; empty: no extender
  std::string certificate, key, client_ca;
};
void AddExtenderFlags(CLI::App& command, ExtenderFlags& flags);

// Runs until a signal requests shutdown. Errors: kInvalid (flags), kNotFound (a file), kUnavailable
// (address in use).
Status RunExtender(const ExtenderFlags& flags, const DaemonFlags& daemon, const SchedulerFile& file,
                   const gpu::Catalogue& catalogue);

}  // namespace nos::cmd
