// Where the API server is and how to prove who we are, from a kubeconfig file.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace nos::kube {

struct Endpoint {
  std::string server;  // "https://10.0.0.1:6443", no trailing slash
  std::string ca_pem;  // empty: the system's roots
  std::string client_certificate_pem, client_key_pem;
  std::string token;
};

// The endpoint of `context` (empty: the file's current-context). File references are resolved
// against `folder`. TLS verification cannot be switched off: insecure-skip-tls-verify is refused,
// and so are users that need an exec plugin. Errors: kInvalid naming what is missing; kNotFound for
// a file; kUnimplemented for exec plugins.
Result<Endpoint> ParseKubeconfig(std::string_view text, std::string_view context,
                                 std::string_view folder);

// Reads `path`; when empty $KUBECONFIG (its first file), else ~/.kube/config.
Result<Endpoint> LoadKubeconfig(const std::string& path, std::string_view context);

}  // namespace nos::kube
