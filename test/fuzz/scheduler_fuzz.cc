// A KubeSchedulerConfiguration from a user: refused as invalid with the path of every problem, or
// unchanged by printing and reading.
#include "codec/yaml.h"
#include "scheduling/configuration.h"
#include "target.h"

using namespace nos;  // NOLINT

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const scheduling::ConfigurationUse use{.default_name = "nos-scheduler",
                                         .simulates = data[0] % 2 == 1};
  const auto documents = ParseYaml(FuzzText(data + 1, size - 1));
  if (!documents.ok() || documents->empty()) return 0;
  const auto configuration = scheduling::ReadConfiguration(documents->front(), use);
  if (!configuration.ok()) {
    Require(configuration.status().code() == Code::kInvalid, "refused as invalid");
    Require(!configuration.status().message().empty(), "says why");
    return 0;
  }
  Require(!configuration->profiles.empty(), "there is a profile");
  for (const scheduling::Profile& profile : configuration->profiles) {
    Require(!profile.scheduler_name.empty(), "profiles have names");
  }
  const std::string printed = scheduling::PrintConfiguration(*configuration);
  const auto parsed = ParseYaml(printed);
  Require(parsed.ok() && parsed->size() == 1, "what is printed is a document");
  const auto again = scheduling::ReadConfiguration(parsed->front(), use);
  Require(again.ok(), "what is printed is read");
  Require(scheduling::PrintConfiguration(*again) == printed, "and means the same");
  return 0;
}
