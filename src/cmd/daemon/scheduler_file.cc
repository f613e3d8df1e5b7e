#include "cmd/daemon/scheduler_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "codec/json.h"
#include "codec/yaml.h"
#include "scheduling/framework.h"

namespace nos::cmd {
namespace {

constexpr std::string_view kKubeKind = "KubeSchedulerConfiguration";
constexpr std::string_view kKind = "SchedulerConfig";
// Names that only nos uses.
constexpr std::array<std::string_view, 5> kOurNames = {
    "nos-scheduler", "CapacityScheduling", "GpuPacking", "GpuPartitioning",
    "GpuCutting"};  // the former name of GpuPartitioning
constexpr size_t kMaxFileBytes = size_t{4} << 20;
constexpr double kUnlimited = 1e6;

void Describe(ConfigFields& f, SchedulerFile::Own& own) {
  f.Text("knownMigGeometriesFile", own.geometries_file,
         "File with additional or overridden GPU models (docs/catalogue.md). Reloaded when it "
         "changes.");
  DescribeDaemon(f, own.daemon, Rates::kPartitioner);
}

std::string PrintOwn(SchedulerFile::Own own) {
  return PrintConfig(kKind, [&](ConfigFields& fields) { Describe(fields, own); });
}

// The documents of the two kinds; null if missing.
struct Documents {
  const Json* kube = nullptr;
  const Json* own = nullptr;
};

Result<Documents> FindDocuments(const std::vector<Json>& documents) {
  Documents found;
  for (const Json& document : documents) {
    const std::string_view kind = FindString(document, "kind");
    if (kind != kKubeKind && kind != kKind) {
      return Invalid(
          fmt::format("expected documents of kind {} and {}, found '{}'", kKubeKind, kKind, kind));
    }
    const Json*& place = kind == kKind ? found.own : found.kube;
    if (place != nullptr) return Invalid(fmt::format("found two documents of kind {}", kind));
    place = &document;
  }
  return found;
}

// "" for an empty path.
Result<std::string> TextOf(const std::string& path) {
  if (path.empty()) return std::string();
  NOS_ASSIGN(std::string text, ReadFile(path, kMaxFileBytes));
  if (Trim(text).empty()) return Invalid(path + ": the file is empty");
  return text;
}

void Note(const std::vector<std::string>& notes) {
  for (const std::string& note : notes) {
    Log(LogLevel::kWarn, "found deprecated or ignored key in scheduler configuration",
        {{"note", note}});
  }
}

}  // namespace

Result<SchedulerFile> ParseSchedulerFile(std::string_view text,
                                         const scheduling::ConfigurationUse& asked) {
  NOS_ASSIGN(const std::vector<Json> all, ParseYaml(text));
  NOS_ASSIGN(const Documents documents, FindDocuments(all));
  scheduling::ConfigurationUse use = asked;
  if (use.simulates && documents.own != nullptr) use.default_name = kOurScheduler;
  SchedulerFile file{scheduling::DefaultConfiguration(use), {}};
  if (documents.kube != nullptr) {
    auto configuration = scheduling::ReadConfiguration(*documents.kube, use);
    if (!configuration.ok()) return configuration.status().Within(std::string(kKubeKind));
    file.configuration = std::move(configuration).value();
  }
  if (documents.own != nullptr && !use.simulates) {
    const auto describe = [&](ConfigFields& fields) { Describe(fields, file.own); };
    NOS_RETURN_IF_ERROR(ReadConfig(*documents.own, kKind, describe, file.configuration.notes)
                            .Within(std::string(kKind)));
  }
  return file;
}

Result<SchedulerFile> ReadSchedulerFile(const std::string& path,
                                        const scheduling::ConfigurationUse& use) {
  NOS_ASSIGN(const std::string text, TextOf(path));
  auto file = ParseSchedulerFile(text, use);
  if (!file.ok()) return file.status().Within(path);
  Note(file->configuration.notes);
  return file;
}

Result<std::set<std::string, std::less<>>> PartitioningProfiles(const std::string& path) {
  std::set<std::string, std::less<>> partitioning;
  NOS_ASSIGN(const std::string text, TextOf(path));
  const auto documents = ParseYaml(text);
  if (!documents.ok()) return documents.status().Within(path);
  const bool ours = std::ranges::any_of(
      *documents, [](const Json& document) { return FindString(document, "kind") == kKind; });
  if (!ours) return partitioning;
  const auto file = ParseSchedulerFile(
      text,
      {.default_name = kOurScheduler, .partitioned_by = scheduling::PartitionedBy::kScheduler});
  if (!file.ok()) {  // nos scheduler rejects this file and therefore partitions no GPU for it
    Log(LogLevel::kWarn, "ignoring configuration that nos scheduler would reject",
        {{"file", path}, {"error", file.status().message()}});
    return partitioning;
  }
  for (const scheduling::Profile& profile : file->configuration.profiles) {
    const bool partitions =
        profile.framework->partitioned_by() == scheduling::PartitionedBy::kScheduler;
    if (partitions) partitioning.insert(profile.scheduler_name);
  }
  return partitioning;
}

Result<bool> SpeaksOfNos(const std::string& path) {
  NOS_ASSIGN(const std::string text, TextOf(path));
  auto documents = ParseYaml(text);
  if (!documents.ok()) return documents.status().Within(path);
  return std::ranges::any_of(*documents, [](const Json& document) {
    const std::string all = WriteJson(document);
    return FindString(document, "kind") == kKind ||
           std::ranges::any_of(kOurNames, [&](std::string_view name) {
             return all.find(fmt::format("\"{}\"", name)) != std::string::npos;
           });
  });
}

std::string PrintSchedulerFile(const SchedulerFile& file) {
  return scheduling::PrintConfiguration(file.configuration) + "---\n" + PrintOwn(file.own);
}

LeaderConfig LeaderConfigOf(const scheduling::Configuration& configuration) {
  const auto& given = configuration.leader_election;
  LeaderConfig config{given.elect, given.name, given.ns};
  config.election.lease = given.lease;
  config.election.renew = given.renew;
  config.election.retry = given.retry;
  return config;
}

kube::HttpOptions HttpOptionsOf(const SchedulerFile& file) {
  kube::HttpOptions options = HttpOptionsOf(file.own.daemon);
  const auto& client = file.configuration.client;
  const bool limited = client.requests_per_second > 0;
  options.requests_per_second =
      limited ? std::min(client.requests_per_second, kUnlimited) : kUnlimited;
  options.burst = limited ? client.burst : static_cast<int>(kUnlimited);
  return options;
}

std::string NeedsRestart(const SchedulerFile& before, const SchedulerFile& after) {
  std::vector<std::string> what;
  if (before.configuration.client != after.configuration.client) what.push_back("clientConnection");
  if (before.configuration.leader_election != after.configuration.leader_election) {
    what.push_back("leaderElection");
  }
  if (PrintOwn(before.own) != PrintOwn(after.own)) what.push_back(std::string(kKind));
  return Join(what, ", ");
}

}  // namespace nos::cmd
