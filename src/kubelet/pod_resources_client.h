// The kubelet's pod-resources API over its unix socket.
//
//   PodResourcesClient kubelet({});
//   Result<std::vector<DeviceAssignment>> held = kubelet.List();
//
// Source: k8s.io/kubelet/pkg/apis/podresources/v1. Any thread; each call has a connection of its
// own, so a kubelet that restarts needs no care.
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
  // Of one answer. A node with 250 pods answers about 100 kB; the kubelet itself stops at 16 MiB.
  size_t max_bytes = 4 << 20;
  // Only devices of resources that begin with this are told.
  std::string resource_prefix = "nvidia.com/";
  // MPS shares ("GPU-...::10::3") are told as such: for an agent that makes them. Else they are the
  // GPU that they are of, as replicas of any device are that device: somebody else's plugin.
  bool mps_shares = false;
};

class PodResourcesClient final : public PodResources {
 public:
  explicit PodResourcesClient(PodResourcesOptions options) : options_(std::move(options)) {}

  // Pods that have ended may still be told (github.com/kubernetes/kubernetes, issue 119423).
  // Errors: kUnavailable, kDeadline, kPermission, kExhausted (the kubelet's rate limit of 100 calls
  // a second, or more than max_bytes), kUnimplemented.
  Result<std::vector<DeviceAssignment>> List() override;
  // Errors as List.
  Result<std::vector<OfferedDevice>> Allocatable() override;

 private:
  Result<std::string> Call(const char* method) const;
  std::string DeviceOf(const std::string& id) const;

  PodResourcesOptions options_;
};

}  // namespace nos::kubelet
