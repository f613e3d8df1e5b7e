// The part of a kubelet that uses DRA drivers, for tests: registers what it finds in the registry
// folder, and calls the driver over its socket.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "kubelet/dra_driver.h"

namespace nos::kubelet {

class DraKubelet {
 public:
  explicit DraKubelet(std::string registry) : registry_(std::move(registry)) {}

  // Asks the plugin behind the driver's registration socket for its service. `refuse`: reports this
  // reason to it in place of success. Error: as UnaryCall, kNotFound (no socket).
  Status Register(const std::string& driver, const std::string& refuse = "");
  // Facts of the registered driver.
  const std::string& type() const { return type_; }
  const std::string& name() const { return name_; }
  const std::string& endpoint() const { return endpoint_; }
  const std::vector<std::string>& versions() const { return versions_; }

  // By uid. `version`: "v1" or "v1beta1". Error: of the whole call.
  using Devices = std::map<std::string, Result<std::vector<PreparedDevice>>>;
  Result<Devices> Prepare(const std::vector<ClaimReference>& claims,
                          const std::string& version = "v1");
  Result<std::map<std::string, Status>> Unprepare(const std::vector<ClaimReference>& claims,
                                                  const std::string& version = "v1");

  // Waits for what a watch of the devices' health gets first. `version`: "v1alpha1" or "v1".
  Result<std::vector<DeviceHealth>> Health(const std::string& version = "v1");

 private:
  std::string registry_, type_, name_, endpoint_;
  std::vector<std::string> versions_;
};

}  // namespace nos::kubelet
