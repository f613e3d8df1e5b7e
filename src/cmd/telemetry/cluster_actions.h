// What readers have done in a cluster: they ask what would become of a pod, and have it created,
// with their own rights.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "cmd/telemetry/cluster_watch.h"
#include "cmd/daemon/config_file.h"
#include "cmd/telemetry/what_if.h"
#include "gpu/catalogue.h"
#include "kube/transport.h"
#include "telemetryserver/actions.h"

namespace nos::cmd {

struct ActionsConfig {
  bool what_if = false, submit = false, impersonate = false;
  std::string cluster{};           // what reports call the one whose API server is asked
  std::string scheduler_config{};  // file
};
void DescribeActions(ConfigFields& fields, ActionsConfig& config);

class ClusterActions final : public telemetryserver::Actions {
 public:
  struct Parts {
    // With this server's own rights.
    kube::Transport& transport;
    // With the reader's. Error: kUnimplemented where that cannot be had.
    std::function<Result<std::shared_ptr<kube::Transport>>(const telemetryserver::ActionCall&)> as_reader;
    // Pods in a namespace.
    std::function<Result<bool>(const telemetryserver::Reader&, const std::string& ns)> may_create;
    const gpu::Catalogue& catalogue;
  };
  // Error: as ReadSchedulerFile.
  static Result<std::unique_ptr<ClusterActions>> Make(ActionsConfig config, Parts parts);

  Can Of(const telemetryserver::Reader& reader) const override;
  Result<std::string> WhatIf(telemetryserver::ActionCall& call) override;
  Result<std::string> Submit(telemetryserver::ActionCall& call) override;

 private:
  ClusterActions(ActionsConfig config, Parts parts);
  bool ActsAs(const telemetryserver::Reader& reader) const;
  Result<WrittenPod> Read(bool on, std::string_view setting, telemetryserver::ActionCall& call) const;
  // As the API server would admit it; as it is where nobody can ask, with a note.
  Result<Json> Admitted(const telemetryserver::ActionCall& call, const WrittenPod& pod,
                        std::string& note) const;

  const ActionsConfig config_;
  const Parts parts_;
  std::unique_ptr<ClusterWatch> watch_;  // null: nobody asks
};

}  // namespace nos::cmd
