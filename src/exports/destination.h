// Where an export goes: another system's HTTP address, and how to prove who we are there.
//
//   NOS_ASSIGN(Destination destination, Destination::For(config, "export.remoteWrite"));
//   kube::HttpTransport transport(destination.connection());
//   request.path = destination.path();
//   NOS_ASSIGN(request.headers, destination.Headers());
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "kube/connection.h"

namespace nos::exports {

struct DestinationConfig {
  std::string url{};         // https://HOST[:PORT][/PATH]; empty: nothing is exported there
  std::string token_file{};  // a bearer token
  std::string username{}, password_file{};
  std::string ca_file{}, certificate_file{}, key_file{};  // PEM
};

class Destination {
 public:
  // `field`: of the configuration, for messages. Error: kInvalid, with the field that is wrong.
  static Result<Destination> For(const DestinationConfig& config, std::string_view field);

  const kube::ConnectionConfig& connection() const { return connection_; }
  const std::string& path() const { return path_; }  // "/api/v1/write", "/"
  // What goes with each request: the password is read anew each time, for it may be rotated.
  // Errors: as ReadFile.
  Result<std::vector<std::pair<std::string, std::string>>> Headers() const;

 private:
  kube::ConnectionConfig connection_;
  std::string path_, username_, password_file_;
};

}  // namespace nos::exports
