// Which of several replicas acts, as a daemon needs it.
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
// The fields of the group leaderElection.
void DescribeLeader(ConfigFields& fields, LeaderConfig& config);
// Error: kInvalid: periods that do not go together.
Status CheckLeader(const LeaderConfig& config);

// The namespace of the pod that this process runs in; else "default".
std::string OwnNamespace();

class Leader {
 public:
  // `on_change`: called from any thread when leadership was won or lost.
  Leader(const kube::ConnectionConfig& connection, const LeaderConfig& config,
         std::function<void()> on_change);
  // Always, when replicas do not elect.
  bool Leads() const { return leadership_ == nullptr || leadership_->Leads(); }
  // Why the Lease could not be asked for, or OK.
  Status error() const { return leadership_ == nullptr ? Status::Ok() : leadership_->error(); }
  void Report(Metrics& metrics) const;

 private:
  const std::string lease_name_;
  kube::HttpTransport transport_;
  std::unique_ptr<kube::Leadership> leadership_;
};

}  // namespace nos::cmd
