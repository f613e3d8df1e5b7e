// Leader election among the replicas of a daemon.
//
//   Leader leader(connection, config, [&] { bell.Ring(); });
//   http_options.may_write = [&] { return leader.Leads(); };
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/metrics.h"
#include "cmd/daemon/config_file.h"
#include "kube/http_transport.h"
#include "kube/leadership.h"

namespace nos::cmd {

struct LeaderConfig {
  bool elect = true;
  std::string lease_name, lease_namespace = {};
  kube::LeaderElectionOptions election = {};
};
// Fields of the group leaderElection.
void DescribeLeader(ConfigFields& fields, LeaderConfig& config);
// Error: kInvalid: inconsistent periods.
Status CheckLeader(const LeaderConfig& config);

// Namespace of the pod that runs this process, else "default".
std::string OwnNamespace();

class Leader {
 public:
  // `on_change` is called from any thread when leadership is won or lost.
  Leader(const kube::ConnectionConfig& connection, const LeaderConfig& config,
         const std::function<void()>& on_change);
  // Always true if leader election is disabled.
  bool Leads() const { return leadership_ == nullptr || leadership_->Leads(); }
  // OK, or why the last request for the Lease failed.
  Status error() const { return leadership_ == nullptr ? Status::Ok() : leadership_->error(); }
  void Report(Metrics& metrics) const;

 private:
  const std::string lease_name_;
  kube::HttpTransport transport_;
  std::unique_ptr<kube::Leadership> leadership_;
};

}  // namespace nos::cmd
