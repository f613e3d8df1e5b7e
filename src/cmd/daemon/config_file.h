// Configuration files of the daemons: one versioned YAML document each, typed and defaulted.
//
//   struct Config { std::string address = ":8081"; Duration idle = ...; };
//   void Fields(ConfigFields& f, Config& c) {
//     f.Group("health", [&] { f.Text("healthProbeBindAddress", c.address, "Where ..."); });
//     f.Seconds("batchWindowIdleSeconds", c.idle, 0, 3600, "A plan is made when ...");
//   }
//   Status read = ReadConfig(text, {"GpuPartitionerConfig"}, [&](auto& f) { Fields(f, config); },
//   w); std::cout << PrintConfig({"GpuPartitionerConfig"}, [&](auto& f) { Fields(f, config); });
//
// One description serves parsing, validation, printing and documentation. All problems of a file
// are reported together, each with its key. Unknown keys are errors, because a misspelt key would
// otherwise be ignored silently.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/function_ref.h"
#include "base/status.h"
#include "codec/json.h"

namespace nos::cmd {

// API group and version in the apiVersion of every configuration.
inline constexpr std::string_view kConfigVersion = "config.nos.nebuly.com/v1alpha1";

// Visits each field. `value` holds the default; a value in the file replaces it.
class ConfigFields {
 public:
  virtual ~ConfigFields() = default;
  virtual void Group(std::string_view key, FunctionRef<void()> fields) = 0;
  virtual void Text(std::string_view key, std::string& value, std::string_view help) = 0;
  // The value is one of `words`.
  virtual void Word(std::string_view key, std::string& value, const std::vector<std::string>& words,
                    std::string_view help) = 0;
  virtual void Flag(std::string_view key, bool& value, std::string_view help) = 0;
  virtual void Number(std::string_view key, int64_t& value, int64_t least, int64_t most,
                      std::string_view help) = 0;
  // A number of seconds, fractions allowed, or a Go duration ("1m30s").
  virtual void Seconds(std::string_view key, Duration& value, Duration least, Duration most,
                       std::string_view help) = 0;
  // Declares that the next field, `key`, was called `old_key` in the last minor version. The old
  // key is still read, with a warning. A file with both keys is an error.
  virtual void Renamed(std::string_view old_key, std::string_view key) = 0;
  // The key was read by older versions and has no effect now.
  virtual void Retired(std::string_view key, std::string_view why) = 0;
};

using DescribeConfig = FunctionRef<void(ConfigFields&)>;

// An empty text means all defaults. `warnings` receives one sentence for each field without effect.
// Error: kInvalid, all problems with their keys.
Status ReadConfig(std::string_view text, std::string_view kind, DescribeConfig fields,
                  std::vector<std::string>& warnings);

// Same for a parsed document.
Status ReadConfig(const Json& document, std::string_view kind, DescribeConfig fields,
                  std::vector<std::string>& warnings);

// YAML that ReadConfig accepts, each field below a comment that explains it.
std::string PrintConfig(std::string_view kind, DescribeConfig fields);

}  // namespace nos::cmd
