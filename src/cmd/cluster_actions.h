// What readers have done in a cluster: they ask what would become of a pod, and have it created,
// with their own rights.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "cmd/cluster_watch.h"
#include "cmd/config_file.h"
#include "cmd/what_if.h"
#include "gpu/catalogue.h"
#include "kube/transport.h"
#include "telemetry/actions.h"

namespace nos::cmd {

struct ActionsConfig {
  bool what_if = false, submit = false, impersonate = false;
  std::string cluster{};           // what reports call the one whose API server is asked
  std::string scheduler_config{};  // file
};
void DescribeActions(ConfigFields& fields, ActionsConfig& config);

class ClusterActions final : public telemetry::Actions {
 public:
  struct Parts {
    // With this server's own rights.
    kube::Transport& transport;
    // With the reader's. Error: kUnimplemented where that cannot be had.
    std::function<Result<std::shared_ptr<kube::Transport>>(const telemetry::ActionCall&)> as_reader;
    // Pods in a namespace.
    std::function<Result<bool>(const telemetry::Reader&, const std::string& ns)> may_create;
    const gpu::Catalogue& catalogue;
  };
  // Error: as ReadSchedulerFile.
  static Result<std::unique_ptr<ClusterActions>> Make(ActionsConfig config, Parts parts);

  Can Of(const telemetry::Reader& reader) const override;
  Result<std::string> WhatIf(telemetry::ActionCall& call) override;
  Result<std::string> Submit(telemetry::ActionCall& call) override;

 private:
  ClusterActions(ActionsConfig config, Parts parts);
  bool ActsAs(const telemetry::Reader& reader) const;
  Result<WrittenPod> Read(bool on, std::string_view setting, telemetry::ActionCall& call) const;
  // As the API server would admit it; as it is where nobody can ask, with a note.
  Result<Json> Admitted(const telemetry::ActionCall& call, const WrittenPod& pod,
                        std::string& note) const;

  const ActionsConfig config_;
  const Parts parts_;
  std::unique_ptr<ClusterWatch> watch_;  // null: nobody asks
};

}  // namespace nos::cmd
