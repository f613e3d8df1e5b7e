// Gives each test its own directory and a minimal kubelet for device plugins: it accepts
// registrations and watches the lists, on its own thread.
#pragma once

#include <deviceplugin.pb.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <condition_variable>
#include <filesystem>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "kubelet/grpc_call.h"
#include "kubelet/grpc_server.h"

namespace nos::kubelet {

inline constexpr auto kLong = std::chrono::seconds(20);  // only reached by a failing test

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = std::filesystem::temp_directory_path() / "nos-kubelet-XXXXXX";
    path_ = mkdtemp(pattern.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return path_ / name; }
  std::string path() const { return path_; }

 private:
  std::filesystem::path path_;
};

class MiniKubelet {
 public:
  using Ids = std::set<std::string>;

  explicit MiniKubelet(const std::string& folder) : folder_(folder) {
    const auto call = [this](std::string_view, const std::string& request) {
      v1beta1::RegisterRequest asked;
      asked.ParseFromString(request);
      const std::lock_guard lock(mutex_);
      ++registrations_;
      to_watch_.push_back(asked);
      wake_up_.Signal();
      return GrpcAnswer{};
    };
    const Status served = server_.Serve(folder + "/kubelet.sock", {call, {}});
    EXPECT_TRUE(served.ok()) << served.message();
    thread_ = std::thread([this] { Run(); });
  }
  ~MiniKubelet() {
    stop_.Signal();
    thread_.join();
  }

  // Waits until the newest list of the resource has these ids; false on a time-out.
  bool Sees(const std::string& resource, const Ids& ids) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kLong, [&] {
      const auto list = lists_.find(resource);
      return list != lists_.end() && list->second == ids;
    });
  }
  // The newest list, without waiting.
  Ids List(const std::string& resource) {
    const std::lock_guard lock(mutex_);
    return lists_[resource];
  }
  // False on a time-out.
  bool WaitForRegistrations(int count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kLong, [&] { return registrations_ >= count; });
  }
  int registrations() {
    const std::lock_guard lock(mutex_);
    return registrations_;
  }
  // Closes the connections to all plugins.
  void HangUp() {
    std::unique_lock lock(mutex_);
    hang_up_ = true;
    wake_up_.Signal();
    changed_.wait(lock, [&] { return !hang_up_; });
  }

  Result<v1beta1::AllocateResponse> Allocate(const std::string& endpoint, const Ids& ids) {
    v1beta1::AllocateRequest request;
    auto& container = *request.add_container_requests();
    for (const std::string& id : ids) container.add_devices_ids(id);
    NOS_ASSIGN(const std::string bytes,
               UnaryCall(folder_ + "/" + endpoint, "/v1beta1.DevicePlugin/Allocate",
                         request.SerializeAsString(), {}));
    v1beta1::AllocateResponse answer;
    answer.ParseFromString(bytes);
    return answer;
  }

 private:
  struct Watch {
    Watch(std::string name, UniqueFd fd)
        : resource(std::move(name)), grpc(std::move(fd), GrpcConnection::Side::kClient, {}) {}
    std::string resource;
    GrpcConnection grpc;
    int32_t stream = 0;
  };

  void Run() {
    for (;;) {
      std::vector<pollfd> fds{{stop_.fd(), POLLIN, 0}, {wake_up_.fd(), POLLIN, 0}};
      for (const Watch& watch : watches_) fds.push_back({watch.grpc.fd(), POLLIN, 0});
      poll(fds.data(), fds.size(), -1);
      wake_up_.Clear();
      if (fds[0].revents != 0) return;
      const std::lock_guard lock(mutex_);
      if (std::exchange(hang_up_, false)) watches_.clear();
      for (const auto& asked : std::exchange(to_watch_, {})) Begin(asked);
      watches_.remove_if([this](Watch& watch) { return !Pump(watch); });
      changed_.notify_all();
    }
  }

  void Begin(const v1beta1::RegisterRequest& asked) {
    Result<UniqueFd> fd = ConnectUnix(folder_ + "/" + asked.endpoint());
    if (!fd.ok()) return;
    Watch& watch = watches_.emplace_back(asked.resource_name(), std::move(fd).value());
    watch.stream = watch.grpc.Request("/v1beta1.DevicePlugin/ListAndWatch", "", "99999S");
    EXPECT_TRUE(watch.grpc.Flush().ok());
  }

  bool Pump(Watch& watch) {
    const bool open = watch.grpc.Read().ok() && watch.grpc.Flush().ok();
    GrpcStream& stream = *watch.grpc.Find(watch.stream);
    for (;;) {
      const auto taken = TakeMessage(stream.received, 1 << 20);
      const std::optional<std::string> message = taken.ok() ? *taken : std::nullopt;
      if (!message) return open;
      v1beta1::ListAndWatchResponse list;
      list.ParseFromString(*message);
      Ids& ids = lists_[watch.resource];
      ids.clear();
      for (const auto& device : list.devices()) {
        ids.insert(device.id() + (device.health() == "Healthy" ? "" : " (unhealthy)"));
      }
    }
  }

  std::string folder_;
  WakeUp stop_, wake_up_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<v1beta1::RegisterRequest> to_watch_;
  std::map<std::string, Ids> lists_;
  int registrations_ = 0;
  bool hang_up_ = false;
  std::list<Watch> watches_;
  GrpcServer server_{{}, [] {}};
  std::thread thread_;
};

}  // namespace nos::kubelet
