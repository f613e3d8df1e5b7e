// The cgroups of the node's pods: they show which pods still run, whatever the API server and the
// kubelet's lists say.
//
//   CgroupFolder cgroups;
//   NOS_ASSIGN(const auto pods, cgroups.Read());
//   if (!pods.contains(uid)) ...                     // its last container has ended
//
// A kubelet makes the cgroup of a pod before its first container, and removes it after the last one
// has ended and the volumes are unmounted (kubernetes 1.34.2, pkg/kubelet/kubelet.go, SyncPod and
// SyncTerminatedPod).
#pragma once

#include <map>
#include <string>
#include <utility>

#include "base/status.h"

namespace nos::kubelet {

class PodCgroups {
 public:
  virtual ~PodCgroups() = default;
  // UIDs of pods; true if a process is in the cgroup. A static pod has the hash of its manifest as
  // UID. Error: kNotFound: the cgroups of pods cannot be seen from here.
  virtual Result<std::map<std::string, bool>> Read() = 0;
};

// Reads the file system of cgroups, version 1 or 2. From a container, only a privileged one sees
// those of others, and with version 1 none does.
class CgroupFolder final : public PodCgroups {
 public:
  explicit CgroupFolder(std::string root = "/sys/fs/cgroup") : root_(std::move(root)) {}
  Result<std::map<std::string, bool>> Read() override;

 private:
  const std::string root_;
};

}  // namespace nos::kubelet
