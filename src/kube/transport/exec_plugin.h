// Runs a credential plugin.
#pragma once

#include <optional>

#include "base/clock.h"
#include "kube/connection.h"

namespace nos::kube {

struct ExecCredential {
  std::string token, client_certificate_pem, client_key_pem;
  std::optional<Time> expires;
};

// Runs the program for at most a minute; its stderr goes to ours.
// Errors: kPermission if it cannot be started, fails, or prints something other than an
// ExecCredential (with the install hint of the kubeconfig); kDeadline.
Result<ExecCredential> RunExecPlugin(const ExecPlugin& plugin, const ConnectionConfig& cluster,
                                     std::string_view ca_pem);

}  // namespace nos::kube
