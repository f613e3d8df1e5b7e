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
// All problems of a file are reported together, each with its key. Unknown keys are errors, because
// a misspelt key would otherwise be ignored silently.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/config_fields.h"
#include "base/function_ref.h"
#include "base/status.h"
#include "codec/json.h"

namespace nos::cmd {

// API group and version in the apiVersion of every configuration.
inline constexpr std::string_view kConfigVersion = "config.nos.nebuly.com/v1alpha1";

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
