// The device side of a kubelet, without containers: takes registrations of device plugins, watches
// their lists, asks them to allocate when a pod is admitted, answers the pod-resources API, and
// remembers over restarts who holds what.
//
//   KubeletDouble kubelet({.plugins = dir, .pod_resources = dir + "/pod-resources.sock"});
//   kubelet.WaitFor(20s, [&] { return kubelet.Resources()["nvidia.com/mig-1g.5gb"].allocatable > 0;
//   }); Result<Admission> pod = kubelet.Admit({"team-a", "train-0"}, {{"nvidia.com/mig-1g.5gb",
//   1}}); kubelet.Stop(); kubelet.Start();   // a kubelet that restarts
//
// Built on grpc++, as another implementation of the protocols than src/kubelet. Not doubled: NUMA
// hints, init containers' reuse, the kubelet's rate limit. Thread-safe.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "doubles/kubelet/device_ledger.h"

namespace nos::doubles {

struct KubeletOptions {
  std::string plugins;        // folder: kubelet.sock, plugins' sockets, the checkpoint
  std::string pod_resources;  // socket
  // After this a resource whose plugin has gone is no longer counted. The kubelet's: 5 minutes.
  Duration grace = std::chrono::minutes(5);
  // How long it tries to reach a plugin that registers. The kubelet's: 10 s.
  Duration dial = std::chrono::seconds(10);
};

// What goes wrong. Hooks run on the double's threads and may block; set before Start().
struct KubeletFaults {
  std::function<void()> before_register{}, before_list{}, before_allocate{};
  int list_code = 0;          // gRPC status that List answers with
  int64_t invented_pods = 0;  // that List tells beyond the real ones
};

struct PodName {
  std::string ns, name, container = "main";
};

// What the container runtime would be told.
struct Admission {
  Ids ids;
  std::map<std::string, std::string> envs;
  std::set<std::string> cdi_devices;
  std::map<std::string, std::string> mounts{};  // container's path -> host's
};

class KubeletDouble {
 public:
  // Starts. Throws std::runtime_error when a socket cannot be made.
  explicit KubeletDouble(KubeletOptions options, KubeletFaults faults = {});
  ~KubeletDouble();

  // As the process ends, and begins: sockets in the folder are removed, the checkpoint is read.
  void Stop();
  void Start();

  // Admits a pod, as the scheduler's choice. Error: kExhausted (UnexpectedAdmissionError): too few
  // healthy free devices, or the plugin refuses.
  Result<Admission> Admit(const PodName& pod, const std::map<std::string, int64_t>& requests);
  void Remove(const std::string& ns, const std::string& name);

  // As in the node's status.
  std::map<std::string, ResourceCount> Resources() const;
  std::map<std::string, Ids> HealthyDevices() const;
  // Calls of Register that were answered OK since construction.
  int registrations() const;
  // Whether `done` becomes true in time; asked again after every change.
  bool WaitFor(Duration timeout, const std::function<bool()>& done) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace nos::doubles
