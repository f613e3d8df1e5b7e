// Actions of readers in a cluster: ask where a pod would be placed, and create it, with the
// reader's own rights.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "cmd/daemon/config_file.h"
#include "cmd/telemetry/cluster_watch.h"
#include "cmd/telemetry/what_if.h"
#include "gpu/catalogue.h"
#include "kube/transport.h"
#include "scheduling/plugin.h"
#include "telemetryserver/actions.h"

namespace nos::cmd {

struct ActionsConfig {
  bool what_if = false, submit = false, impersonate = false;
  std::string cluster{};           // reporters' name of the cluster that the actions use
  std::string scheduler_config{};  // file
  // Without a file: by its default profile. A sandbox sets it.
  scheduling::PartitionedBy partitioned_by = scheduling::PartitionedBy::kScheduler;
};
void DescribeActions(ConfigFields& fields, ActionsConfig& config);

class ClusterActions final : public telemetryserver::Actions {
 public:
  struct Parts {
    // Uses this server's own rights.
    kube::Transport& transport;
    // Uses the reader's rights. Error: kUnimplemented if that is not configured.
    std::function<Result<std::shared_ptr<kube::Transport>>(const telemetryserver::ActionCall&)>
        as_reader;
    // True if the reader may create pods in the namespace.
    std::function<Result<bool>(const telemetryserver::Reader&, const std::string& ns)> may_create;
    const gpu::Catalogue& catalogue;
  };
  // Error: see ReadSchedulerFile.
  static Result<std::unique_ptr<ClusterActions>> Make(ActionsConfig config, Parts parts);

  Can Of(const telemetryserver::Reader& reader) const override;
  Result<std::string> WhatIf(telemetryserver::ActionCall& call) override;
  Result<std::string> Submit(telemetryserver::ActionCall& call) override;

 private:
  ClusterActions(ActionsConfig config, Parts parts);
  bool ActsAs(const telemetryserver::Reader& reader) const;
  Result<WrittenPod> Read(bool on, std::string_view setting,
                          telemetryserver::ActionCall& call) const;
  // The pod as the API server admits it. If no dry run is possible, the pod unchanged, with a note.
  Result<Json> Admitted(const telemetryserver::ActionCall& call, const WrittenPod& pod,
                        std::string& note) const;

  const ActionsConfig config_;
  const Parts parts_;
  std::unique_ptr<ClusterWatch> watch_;  // null: what-if is disabled
};

}  // namespace nos::cmd
