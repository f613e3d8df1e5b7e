#include "kubelet/plugin_registrar.h"

#include <deviceplugin.pb.h>
#include <fmt/core.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/log.h"
#include "kubelet/grpc_call.h"

namespace nos::kubelet {
namespace {

constexpr const char* kVersion = "v1beta1";
constexpr const char* kRegister = "/v1beta1.Registration/Register";
constexpr Duration kLook = std::chrono::seconds(10);          // in case an event is lost
constexpr Duration kLookForFolder = std::chrono::seconds(1);  // until the directory exists

// "nos-nvidia.com_mig-1g.5gb.sock"
std::string SocketName(std::string resource) {
  std::replace(resource.begin(), resource.end(), '/', '_');
  return "nos-" + resource + ".sock";
}

}  // namespace

PluginRegistrar::PluginRegistrar(RegistrarOptions options, GrpcServer& server,
                                 const WakeUp& wake_up)
    : options_(std::move(options)),
      kubelet_socket_(options_.folder + "/kubelet.sock"),
      server_(server),
      wake_up_(wake_up),
      folder_(options_.folder),
      thread_([this] { Run(); }) {}

PluginRegistrar::~PluginRegistrar() {
  stop_.Signal();
  thread_.join();
}

std::string PluginRegistrar::SocketOf(const std::string& resource) const {
  return options_.folder + "/" + SocketName(resource);
}

void PluginRegistrar::Keep(const std::string& resource, GrpcService service) {
  const std::lock_guard lock(mutex_);
  const auto [plugin, is_new] = plugins_.try_emplace(resource);
  if (!is_new) return;
  plugin->second.service = std::move(service);
  wake_up_.Signal();
}

std::map<std::string, PluginRegistrar::Report> PluginRegistrar::Reports() const {
  const std::lock_guard lock(mutex_);
  std::map<std::string, Report> reports;
  for (const auto& [resource, plugin] : plugins_) reports[resource] = plugin.report;
  return reports;
}

void PluginRegistrar::Run() {
  bool watched = false;
  do {
    // 1. Clear the signals first: a change after this point starts another round.
    wake_up_.Clear();
    watched = folder_.Refresh().ok();
    // 2. Notice a new kubelet before looking at plugins: it makes every registration due.
    NoticeKubelet();
    // 3. Serve the sockets first: the kubelet connects to a plugin while it registers.
    std::vector<std::string> due;
    {
      const std::lock_guard lock(mutex_);
      for (auto& [resource, plugin] : plugins_) {
        KeepServed(resource, plugin);
        if (IsDue(resource, plugin)) due.push_back(resource);
      }
    }
    // 4. Register without the lock, because the kubelet may take seconds to answer.
    for (const std::string& resource : due) Record(resource, Register(resource));
  } while (WaitForWork(watched));
}

void PluginRegistrar::NoticeKubelet() {
  std::string now = FileVersion(kubelet_socket_);
  if (now == kubelet_) return;
  Log(LogLevel::kInfo, now.empty() ? "lost kubelet socket" : "found kubelet socket",
      {{"socket", kubelet_socket_}});
  kubelet_ = std::move(now);
  if (kubelet_.empty()) return;
  server_.Disconnect();
  const std::lock_guard lock(mutex_);
  for (auto& [resource, plugin] : plugins_) {
    plugin.connected = false;
    plugin.next_attempt = {};
    plugin.attempts = 0;
  }
}

void PluginRegistrar::KeepServed(const std::string& resource, Plugin& plugin) {
  const std::string socket = SocketOf(resource);
  if (server_.Serves(socket)) return;
  // If another process replaced our socket, leave its socket alone: two processes that keep
  // replacing it would both fail.
  plugin.replaced = plugin.replaced || (plugin.served && server_.IsReplaced(socket));
  if (plugin.served && server_.IsReplaced(socket)) return;
  const Status served = server_.Serve(socket, plugin.service);
  // A failure is reported by the registration that follows, so this one is only a debug line.
  if (!served.ok()) {
    Log(LogLevel::kDebug, "failed to serve device plugin", {{"error", served.message()}});
  }
  plugin.served = plugin.served || served.ok();
  if (!served.ok() || !std::exchange(plugin.replaced, false)) return;
  // The kubelet may still read the list on a stream of before. It takes that plugin for ended.
  Log(LogLevel::kInfo, "serving device plugin again", {{"resource", resource}});
  server_.Disconnect(socket);
  plugin.connected = false;
  plugin.attempts = 0;
  plugin.next_attempt = std::chrono::steady_clock::now() + options_.pauses.base;
}

GrpcServer::WatchState PluginRegistrar::WatchesOf(const std::string& resource) const {
  const std::string socket = SocketOf(resource);
  return server_.IsReplaced(socket) ? GrpcServer::WatchState() : server_.State(socket);
}

bool PluginRegistrar::IsDue(const std::string& resource, Plugin& plugin) {
  const SteadyTime now = std::chrono::steady_clock::now();
  const bool connected = WatchesOf(resource).watches > 0;
  if (connected) {
    plugin.report.trouble.clear();
    plugin.attempts = 0;
  } else if (plugin.connected) {
    // Gives the kubelet time to remove the old connection, which it identifies by the resource's
    // name.
    plugin.next_attempt = now + options_.pauses.base;
  }
  plugin.connected = connected;
  return !connected && plugin.next_attempt <= now;
}

Status PluginRegistrar::Register(const std::string& resource) const {
  const std::string socket = SocketOf(resource);
  if (!server_.Serves(socket)) {
    if (!FileIdentity(socket).empty()) {
      return {Code::kUnavailable, fmt::format("another process has put its own socket in place of "
                                              "{}: is a second agent running on this node?",
                                              socket)};
    }
    return {Code::kUnavailable, fmt::format("cannot make {}: is the folder there, and this process "
                                            "allowed to write to it?",
                                            socket)};
  }
  if (kubelet_.empty()) {
    return {Code::kUnavailable, fmt::format("there is no {}: is the kubelet running, and this its "
                                            "folder?",
                                            kubelet_socket_)};
  }
  v1beta1::RegisterRequest request;
  request.set_version(kVersion);
  request.set_endpoint(SocketName(resource));
  request.set_resource_name(resource);
  request.mutable_options();
  return UnaryCall(
             kubelet_socket_, kRegister, request.SerializeAsString(),
             {.timeout = options_.register_timeout, .max_answer = 4096, .cancel_fd = stop_.fd()})
      .status();
}

void PluginRegistrar::Record(const std::string& resource, const Status& registered) {
  const std::lock_guard lock(mutex_);
  Plugin& plugin = plugins_.at(resource);
  ++(registered.ok() ? plugin.report.registrations : plugin.report.failures);
  if (registered.ok()) {
    Log(LogLevel::kInfo, "registered device plugin with kubelet", {{"resource", resource}});
  } else if (plugin.report.trouble != registered.message()) {
    Log(LogLevel::kWarn, "failed to register device plugin with kubelet",
        {{"resource", resource}, {"error", registered.message()}});
  }
  plugin.report.trouble = registered.message();
  plugin.next_attempt = std::chrono::steady_clock::now() + options_.pauses.After(++plugin.attempts);
}

bool PluginRegistrar::WaitForWork(bool watched) {
  const SteadyTime now = std::chrono::steady_clock::now();
  SteadyTime until = now + (watched ? kLook : kLookForFolder);
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [resource, plugin] : plugins_) {
      if (!plugin.connected) until = std::min(until, plugin.next_attempt);
    }
  }
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - now).count();
  std::array<pollfd, 3> fds{
      {{stop_.fd(), POLLIN, 0}, {wake_up_.fd(), POLLIN, 0}, {folder_.fd(), POLLIN, 0}}};
  poll(fds.data(), fds.size(), static_cast<int>(std::max<int64_t>(left, 0)));
  return fds[0].revents == 0;
}

}  // namespace nos::kubelet
