// Keeps device plugins served and registered with the kubelet: their sockets exist in the kubelet's
// directory, and the kubelet watches each list. Level-triggered: it compares the actual state with
// the wanted one when the directory changes, when a watch begins or ends, and every few seconds.
//
// A new kubelet.sock is a new kubelet: connections to the old one are closed, and all plugins
// register at once. Thread-safe; has its own thread.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "base/back_off.h"
#include "base/clock.h"
#include "base/folder_watch.h"
#include "base/unix_socket.h"
#include "kubelet/grpc_server.h"

namespace nos::kubelet {

struct RegistrarOptions {
  std::string folder;
  Duration register_timeout{};
  BackOff pauses;  // between attempts to register
};

class PluginRegistrar {
 public:
  // `wake_up`: signalled when a watch has begun or ended. References must outlive this.
  PluginRegistrar(RegistrarOptions options, GrpcServer& server, const WakeUp& wake_up);
  ~PluginRegistrar();
  PluginRegistrar(const PluginRegistrar&) = delete;

  // The plugin's socket: in the directory, named after the resource.
  std::string SocketOf(const std::string& resource) const;
  // Keeps the plugin served and registered from now on. No effect on a resource that is kept
  // already.
  void Keep(const std::string& resource, GrpcService service);

  // Watches of the resource's list; no watch if another process has replaced the socket: a kubelet
  // keeps an old stream open when the resource is registered anew, but asks the new plugin.
  GrpcServer::WatchState WatchesOf(const std::string& resource) const;

  struct Report {
    uint64_t registrations = 0, failures = 0;
    std::string trouble;  // cause of the last attempt's failure; "" if it succeeded
  };
  std::map<std::string, Report> Reports() const;

 private:
  using SteadyTime = std::chrono::steady_clock::time_point;
  struct Plugin {
    GrpcService service;
    Report report;
    bool served = false;    // its socket was served at least once
    bool replaced = false;  // another process has put its own socket in place
    bool connected = false;
    SteadyTime next_attempt{};
    int attempts = 0;  // in a row, without a kubelet that watches the list
  };

  void Run();
  void NoticeKubelet();
  void KeepServed(const std::string& resource, Plugin& plugin);
  bool IsDue(const std::string& resource, Plugin& plugin);
  Status Register(const std::string& resource) const;
  void Record(const std::string& resource, const Status& registered);
  // Returns false when the thread must stop.
  bool WaitForWork(bool watched);

  const RegistrarOptions options_;
  const std::string kubelet_socket_;
  GrpcServer& server_;
  const WakeUp& wake_up_;
  WakeUp stop_;
  FolderWatch folder_;   // used by Run()
  std::string kubelet_;  // used by Run(): FileVersion of kubelet.sock
  mutable std::mutex mutex_;
  std::map<std::string, Plugin> plugins_;  // by resource; guarded by mutex_; never shrinks
  std::thread thread_;                     // last: uses the others
};

}  // namespace nos::kubelet
