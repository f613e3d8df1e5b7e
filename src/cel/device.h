// A device of a ResourceSlice, as selectors see it. Prepared once and then read by any number of
// programs and threads.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace nos::cel {

// A semantic version.
struct Version {
  std::string text;
};

// resource.k8s.io/v1 DeviceAttribute: exactly one value, or a list of values.
using AttributeValue =
    std::variant<int64_t, bool, std::string, Version, std::vector<int64_t>, std::vector<bool>,
                 std::vector<std::string>, std::vector<Version>>;

// Names are "domain/identifier"; without a domain, they belong to the driver's.
struct DeviceSpec {
  std::string driver;
  bool allow_multiple_allocations = false;
  std::map<std::string, AttributeValue> attributes;
  std::map<std::string, std::string> capacity;  // quantities as text, like "80Gi"
};

// True if Device accepts the text as a version.
bool IsVersion(const std::string& text);

class DeviceMaps;

class Device {
 public:
  explicit Device(const DeviceSpec& spec);
  ~Device();
  Device(Device&&) noexcept;
  Device& operator=(Device&&) noexcept;

  // The reason why no selector can be evaluated for this device: a version or a quantity that is
  // none. Usually empty.
  const std::string& error() const { return error_; }
  // For Program.
  const DeviceMaps& maps() const { return *maps_; }

 private:
  std::string error_;  // filled while maps_ is made
  std::unique_ptr<const DeviceMaps> maps_;
};

}  // namespace nos::cel
