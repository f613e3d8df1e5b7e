// Client of the kubelet's pod-resources API over its unix socket.
//
//   PodResourcesClient kubelet({});
//   Result<std::vector<DeviceAssignment>> held = kubelet.List();
//
// Source: k8s.io/kubelet/pkg/apis/podresources/v1. Callable from any thread; each call opens its
// own connection, so a restart of the kubelet needs no handling.
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "kubelet/device_plugin.h"
#include "kubelet/pod_resources.h"

namespace nos::kubelet {

struct PodResourcesOptions {
  std::string socket = "/var/lib/kubelet/pod-resources/kubelet.sock";
  Duration timeout = std::chrono::seconds(5);
  // Limit for one answer. A node with 250 pods answers about 100 kB; the kubelet's own limit is 16
  // MiB.
  size_t max_bytes = 4 << 20;
  // Only devices of resources with this prefix are returned.
  std::string resource_prefix = "nvidia.com/";
  // If true, MPS shares ("GPU-...::10::3") are returned as shares: for an agent that creates them.
  // Otherwise the id is mapped to its GPU, like the replicas of any other device, which another
  // plugin offers.
  bool mps_shares = false;
};

class PodResourcesClient final : public PodResources {
 public:
  explicit PodResourcesClient(PodResourcesOptions options) : options_(std::move(options)) {}

  // May still list pods that have ended (github.com/kubernetes/kubernetes, issue 119423). Errors:
  // kUnavailable, kDeadline, kPermission, kExhausted (the kubelet's rate limit of 100 calls a
  // second, or more than max_bytes), kUnimplemented.
  Result<std::vector<DeviceAssignment>> List() override;
  // Errors as List.
  Result<std::vector<ClaimAssignment>> ListClaims() override;
  // Errors as List.
  Result<std::vector<OfferedDevice>> Allocatable() override;

 private:
  std::string DeviceOf(const std::string& id) const;

  PodResourcesOptions options_;
};

}  // namespace nos::kubelet
