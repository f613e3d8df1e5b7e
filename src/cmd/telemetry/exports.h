// Exports of the telemetry server to other systems, each on its own thread. All are disabled by
// default.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/metrics.h"
#include "cmd/daemon/config_file.h"
#include "exports/clickhouse.h"
#include "exports/destination.h"
#include "exports/walkai.h"
#include "telemetryserver/recorder.h"

namespace nos::cmd {

struct ExportsConfig {
  int64_t backlog_megabytes = 1024;
  struct {
    exports::DestinationConfig destination;
    std::string labels, metrics;
    int64_t shards = 4, samples = 2000;
  } remote_write;
  struct {
    exports::DestinationConfig destination;
    exports::ClickHouseOptions options;
  } clickhouse;
  struct {
    exports::DestinationConfig destination;
    exports::WalkaiOptions options;
  } walkai;
};
void DescribeExports(ConfigFields& fields, ExportsConfig& config);
// Registers the enabled exports as followers of the recorder's journal, with the journal's size
// limit.
void AddFollowers(const ExportsConfig& config, telemetryserver::RecorderOptions& options);

class Exports {
 public:
  // REQUIRES: the recorder was opened with options from AddFollowers. All arguments must outlive
  // the result. Errors: kInvalid (configuration, with the field), see JournalReader::Open.
  static Result<std::unique_ptr<Exports>> Start(const ExportsConfig& config,
                                                const std::string& store_path,
                                                telemetryserver::Recorder& recorder,
                                                Metrics& metrics);
  // Waits for requests in flight. Undelivered records stay in the journal.
  ~Exports();
  Exports(const Exports&) = delete;
  Exports& operator=(const Exports&) = delete;

 private:
  class Running;
  Exports();
  Result<Running*> Add(const char* name, const exports::DestinationConfig& config);
  static Status Follow(Running& running, std::shared_ptr<exports::Sink> sink,
                       const std::string& store_path, telemetryserver::Recorder& recorder,
                       Metrics& metrics);
  Status StartRemoteWrite(const ExportsConfig& config, const std::string& store_path,
                          telemetryserver::Recorder& recorder, Metrics& metrics);
  Status StartClickHouse(const ExportsConfig& config, const std::string& store_path,
                         telemetryserver::Recorder& recorder, Metrics& metrics);
  Status StartWalkai(const ExportsConfig& config, telemetryserver::Recorder& recorder,
                     Metrics& metrics);
  std::vector<std::unique_ptr<Running>> running_;
};

}  // namespace nos::cmd
