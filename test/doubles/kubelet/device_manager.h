// The device manager of a kubelet, without containers: accepts registrations of device plugins,
// watches their lists, calls Allocate when a pod is admitted, serves the pod-resources API, and
// keeps assignments over restarts.
//
//   KubeletDouble kubelet({.plugins = dir, .pod_resources = dir + "/pod-resources.sock"});
//   kubelet.WaitFor(20s, [&] { return kubelet.Resources()["nvidia.com/mig-1g.5gb"].allocatable > 0;
//   }); Result<Admission> pod = kubelet.Admit({"team-a", "train-0"}, {{"nvidia.com/mig-1g.5gb",
//   1}}); kubelet.Stop(); kubelet.Start();   // a kubelet that restarts
//
// Built on grpc++, which is independent of src/kubelet. Not doubled: NUMA hints, reuse of init
// containers' devices, the kubelet's rate limit. Thread-safe.
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
  std::string plugins;        // directory: kubelet.sock, plugins' sockets, checkpoint
  std::string pod_resources;  // socket
  // Time after which a resource without a plugin is no longer counted. The kubelet's: 5 minutes.
  Duration grace = std::chrono::minutes(5);
  // Time limit for connecting to a registering plugin. The kubelet's: 10 s.
  Duration dial = std::chrono::seconds(10);
};

// Injected faults. Hooks run on the double's threads and may block; set them before Start().
struct KubeletFaults {
  std::function<void()> before_register{}, before_list{}, before_allocate{};
  int list_code = 0;          // gRPC status returned by List
  int64_t invented_pods = 0;  // number of additional pods in List
};

struct PodName {
  std::string ns, name, container = "main";
};

// The parameters for the container runtime.
struct Admission {
  Ids ids;
  std::map<std::string, std::string> envs;
  std::set<std::string> cdi_devices;
  std::map<std::string, std::string> mounts{};  // container's path -> host's
};

class KubeletDouble {
 public:
  // Starts. Throws std::runtime_error if a socket cannot be created.
  explicit KubeletDouble(KubeletOptions options, KubeletFaults faults = {});
  ~KubeletDouble();

  // Like the end and start of the process: removes all sockets in the directory, reads the
  // checkpoint.
  void Stop();
  void Start();

  // Admits a pod bound to this node. Error: kExhausted (UnexpectedAdmissionError): too few healthy
  // free devices, or the plugin refuses.
  Result<Admission> Admit(const PodName& pod, const std::map<std::string, int64_t>& requests);
  void Remove(const std::string& ns, const std::string& name);

  // The amounts in the node's status.
  std::map<std::string, ResourceCount> Resources() const;
  std::map<std::string, Ids> HealthyDevices() const;
  // Number of successful Register calls since construction.
  int registrations() const;
  // Waits until `done` returns true; checks it after every change. False on a time-out.
  bool WaitFor(Duration timeout, const std::function<bool()>& done) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace nos::doubles
