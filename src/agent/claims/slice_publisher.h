// Keeps the ResourceSlices of this node at the API server as they should be.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "dra/gpu_slices.h"
#include "kube/client.h"

namespace nos::agent {

// For one thread.
class SlicePublisher {
 public:
  // Level-triggered: compares with what is stored, from any state. Errors: kUnimplemented (the API
  // server drops counters, so that devices which overlap would be given away twice: nothing is
  // published), kConflict (another client wrote: call again), and those of the client.
  Status Publish(kube::Client& client, const dra::NodeOfDriver& node,
                 const std::vector<dra::GpuOfDriver>& gpus);
  // Removes all slices of the node.
  Status Withdraw(kube::Client& client, const std::string& node);

 private:
  // OK: all are written, or the rules have changed, and `again` is set.
  Status Write(kube::Client& client, const dra::SliceWrites& writes, bool& again);
  Status CheckStored(const Json& sent, const Result<Json>& stored, bool& again);

  dra::SliceRules rules_;
  bool form_known_ = false;  // rules_.combined is what the server accepts
};

}  // namespace nos::agent
