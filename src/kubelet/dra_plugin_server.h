// Registers a DRA driver with the kubelet and serves its calls.
//
//   DraPluginServer server({.driver = "gpu.nos.nebuly.com"}, driver);
//   NOS_RETURN_IF_ERROR(server.Keep());   // now and whenever sockets may have been removed
//
// The kubelet finds the registration socket in a folder that it watches, asks there for the socket
// of the service, and calls that. The service is served first, so that the kubelet never finds one
// that does not answer. A kubelet that restarts finds the registration socket again.
//
// Source: k8s.io/kubelet/pkg/apis, pluginregistration/v1, dra/v1 and dra-health/v1alpha1.
// Thread-safe.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "base/task_thread.h"
#include "kubelet/dra_driver.h"
#include "kubelet/grpc_server.h"

namespace nos::kubelet {

struct DraPluginOptions {
  std::string driver;  // a DNS subdomain
  std::string plugins = "/var/lib/kubelet/plugins";
  std::string registry = "/var/lib/kubelet/plugins_registry";
  // The folder `plugins` as the kubelet sees it; "": the same.
  std::string plugins_of_kubelet{};
  // Called when Registration() has changed. Must not block, nor call the server.
  std::function<void()> on_registration{};
};

class DraPluginServer {
 public:
  // The driver must outlive this, and calls no `done` after this is destroyed.
  DraPluginServer(DraPluginOptions options, DraDriver& driver);
  // Removes the sockets. The kubelet then deletes the node's ResourceSlices of the driver, after a
  // grace period of 30 s.
  ~DraPluginServer();

  // Creates the sockets that are missing. Errors: kInvalid (a path is too long for a socket),
  // kPermission, kUnavailable.
  Status Keep();
  // The folders of the sockets, which Keep makes too.
  Status MakeFolders() const;
  // The kubelet's answer to the registration. Error: kInvalid, with its reason; kUnavailable: it
  // has not answered yet.
  Status Registration() const;

  // The health of the driver's devices, which kubelets with the gate ResourceHealthStatus (on by
  // default since 1.36) write into the status of pods. It counts as unknown when it is older than
  // `valid`, so it is to be published again before, even if nothing changed.
  void PublishHealth(const std::string& pool, const std::vector<DeviceHealth>& devices, Time now,
                     Duration valid);

  // The folder of the driver's own files, beside its socket.
  std::string Folder() const { return options_.plugins + "/" + options_.driver; }

 private:
  GrpcAnswer Register(std::string_view method, const std::string& request);
  void Begin(const GrpcCall& call, std::string_view method, std::string request);
  void Prepare(const GrpcCall& call, const std::string& request);
  void Unprepare(const GrpcCall& call, const std::string& request);

  const DraPluginOptions options_;
  DraDriver& driver_;
  mutable std::mutex mutex_;
  Status registered_{Code::kUnavailable, "the kubelet has not registered the driver yet"};
  GrpcServer server_;
  TaskThread calls_;  // last: its functions use the server
};

}  // namespace nos::kubelet
