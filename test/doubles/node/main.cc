// A node without containers for a real control plane: joins with its labels, writes its status with
// the plugins' devices every 10 s like a kubelet, admits the pods bound to it and reports them as
// running.
//
//   nos-node-double --kubeconfig FILE --name gpu-1 --folder DIR [--label KEY=VALUE]...
//                   [--plugin KEY=VALUE --nvml FILE] [--offers FILE] [--journal FILE]
//
// With --plugin, pods with this label play NVIDIA's device plugin: while one runs, the kubelet is
// offered the MIG devices that the driver's library had at its start. It does not see later ones.
//
// With --offers, a plugin offers the devices listed in the file, a line "RESOURCE DEVICE_ID" each,
// and follows its changes.
//
// With --journal, lines for devices that pods get and return are appended to the file
// (device_journal.h).
//
// The kubelet's sockets are DIR/device-plugins/kubelet.sock and DIR/pod-resources.sock. A pod with
// the annotation test.nos.nebuly.com/run-seconds ends by itself. Runs until SIGTERM; DIR keeps the
// devices of pods.
#include <CLI/CLI.hpp>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <thread>

#include "base/log.h"
#include "base/text.h"
#include "base/wake_signal.h"
#include "cluster/objects.h"
#include "doubles/device_journal.h"
#include "doubles/kubelet/device_manager.h"
#include "doubles/node/mig_devices.h"
#include "kube/cache.h"
#include "kube/http_transport.h"
#include "kubelet/device_plugin_server.h"

namespace {

using namespace nos;  // NOLINT: a program of its own
using doubles::KubeletDouble;

constexpr Duration kSync = std::chrono::seconds(10);  // nodeStatusUpdateFrequency
constexpr std::string_view kRunSeconds = "test.nos.nebuly.com/run-seconds";

struct Flags {
  std::string kubeconfig, name, folder, plugin, nvml, offers, journal;
  std::vector<std::string> labels;
};

class NodeDouble {
 public:
  NodeDouble(const Flags& flags, kube::Transport& transport, WakeSignal& bell)
      : flags_(flags),
        client_(transport),
        bell_(bell),
        kubelet_({.plugins = flags.folder + "/device-plugins",
                  .pod_resources = flags.folder + "/pod-resources.sock"}),
        pods_(kube::kPods, cluster::ReadPod,
              {.field_selector = "spec.nodeName=" + flags.name, .wake = [this] { bell_.Ring(); }}) {
  }

  // Synchronizes everything once; returns the longest time until the next call.
  Duration Turn() {
    const Time now = clock_.Now();
    Report(now);
    pods_.Pump(client_, now);
    Duration wait = std::min<Duration>(kSync, pods_.reflector().NextDue() - now);
    if (!flags_.offers.empty()) {
      const Status offered = FollowOffers();
      if (!offered.ok()) {
        Log(LogLevel::kWarn, "failed to update offer", {{"error", offered.ToString()}});
      }
      wait = std::min<Duration>(wait, std::chrono::milliseconds(200));
    }
    if (!pods_.synced()) return std::max<Duration>(wait, std::chrono::milliseconds(10));
    for (const auto& pod : *pods_.Snapshot()) {
      const Status done = Keep(*pod, now, wait);
      if (done.ok()) continue;
      Log(LogLevel::kWarn, "failed to sync Pod", {{"pod", pod->Key()}, {"error", done.ToString()}});
      wait = std::min<Duration>(wait, std::chrono::milliseconds(500));
    }
    for (auto it = admitted_.begin(); it != admitted_.end();) {
      const auto pod = pods_.Get(it->first);
      const bool gone = pod == nullptr || pod->meta.uid != it->second.uid || pod->Finished();
      if (gone) Forget(it->first);
      if (gone) plugins_.erase(it->second.uid);
      it = gone ? admitted_.erase(it) : std::next(it);
    }
    return std::max<Duration>(wait, std::chrono::milliseconds(10));
  }

 private:
  struct Admitted {
    std::string uid;
    Time since;
  };

  void Report(Time now) {
    if (now < reported_at_ + kSync) return;
    JsonObject capacity{{"cpu", "96"}, {"memory", "512Gi"}, {"pods", "250"}};
    JsonObject allocatable = capacity;
    for (const auto& [name, count] : kubelet_.Resources()) {
      capacity[name] = std::to_string(count.capacity);
      allocatable[name] = std::to_string(count.allocatable);
    }
    const std::string time = FormatTime(now);
    const Json ready = {{"type", "Ready"},           {"status", "True"},
                        {"reason", "KubeletReady"},  {"message", "doubled"},
                        {"lastHeartbeatTime", time}, {"lastTransitionTime", time}};
    const Json patch = {{"status",
                         {{"capacity", std::move(capacity)},
                          {"allocatable", std::move(allocatable)},
                          {"conditions", JsonArray{ready}}}}};
    Status updated =
        client_.Patch(kube::kNodes, "", flags_.name, kube::PatchType::kStrategic, patch, "status")
            .status();
    if (updated.code() == Code::kNotFound) updated = Join();
    if (!updated.ok()) {
      Log(LogLevel::kWarn, "failed to update Node status", {{"error", updated.ToString()}});
      return;
    }
    reported_at_ = now;
  }
  // The next report fills in the status.
  Status Join() {
    JsonObject labels{{"kubernetes.io/hostname", flags_.name},
                      {"kubernetes.io/os", "linux"},
                      {"kubernetes.io/arch", "amd64"}};
    for (const std::string& label : flags_.labels) {
      const size_t equals = label.find('=');
      labels[label.substr(0, equals)] = label.substr(equals + 1);
    }
    const Json node = {{"apiVersion", "v1"},
                       {"kind", "Node"},
                       {"metadata", {{"name", flags_.name}, {"labels", std::move(labels)}}}};
    NOS_RETURN_IF_ERROR(client_.Create(kube::kNodes, "", node).status());
    bell_.Ring();
    return {Code::kUnavailable, "joins"};
  }

  Status Keep(const cluster::Pod& pod, Time now, Duration& wait) {
    if (pod.meta.deleted) {
      Forget(pod.Key());
      plugins_.erase(pod.meta.uid);
      admitted_.erase(pod.Key());
      // Like the kubelet's: its containers have ended. The controller of Jobs waits for this.
      if (!pod.Finished()) {
        const Json ended = {{"metadata", {{"uid", pod.meta.uid}}},
                            {"status", {{"phase", "Failed"}}}};
        NOS_RETURN_IF_ERROR(client_
                                .Patch(kube::kPods, pod.meta.ns, pod.meta.name,
                                       kube::PatchType::kStrategic, ended, "status")
                                .status());
      }
      return client_.Delete(
          kube::kPods, pod.meta.ns, pod.meta.name,
          {{"gracePeriodSeconds", 0}, {"preconditions", {{"uid", pod.meta.uid}}}});
    }
    if (pod.Finished()) return Status::Ok();
    const auto known = admitted_.find(pod.Key());
    if (known == admitted_.end() || known->second.uid != pod.meta.uid) {
      if (pod.phase != "Running") return Admit(pod, now);
      admitted_[pod.Key()] = {pod.meta.uid, now};  // admitted before this process started
      bell_.Ring();
      return Status::Ok();
    }
    if (pod.phase != "Running") return ReportPhase(pod, "Running", "", now);
    if (IsPlugin(pod) && !plugins_.contains(pod.meta.uid)) return StartPlugin(pod);
    const auto limit = pod.meta.annotations.find(kRunSeconds);
    const auto seconds =
        limit == pod.meta.annotations.end() ? std::nullopt : ParseDouble(limit->second);
    if (!seconds) return Status::Ok();
    const Time end = known->second.since + FromSeconds(*seconds);
    if (now >= end) return ReportPhase(pod, "Succeeded", "", now);
    wait = std::min<Duration>(wait, end - now);
    return Status::Ok();
  }

  // Like the kubelet: a pod that cannot get its devices fails.
  Status Admit(const cluster::Pod& pod, Time now) {
    Forget(pod.Key());  // left by an unfinished attempt of a former process
    for (const cluster::Container& container : pod.containers) {
      std::map<std::string, int64_t> wanted;
      for (const auto& [name, amount] : container.limits) {
        if (name.starts_with("nvidia.com/")) wanted[name] = amount.Value();
      }
      if (wanted.empty()) continue;
      const auto held = kubelet_.Admit({pod.meta.ns, pod.meta.name, container.name}, wanted);
      if (held.ok()) {
        for (const std::string& id : held->ids) {
          held_[pod.Key()].insert(id);
          Journal("held", id, pod.Key());
        }
        continue;
      }
      Forget(pod.Key());
      return ReportPhase(pod, "Failed", held.status().message(), now);
    }
    admitted_[pod.Key()] = {pod.meta.uid, now};
    return ReportPhase(pod, "Running", "", now);
  }
  bool IsPlugin(const cluster::Pod& pod) const {
    const size_t equals = flags_.plugin.find('=');
    const auto label = pod.meta.labels.find(flags_.plugin.substr(0, equals));
    return label != pod.meta.labels.end() && label->second == flags_.plugin.substr(equals + 1);
  }
  Status StartPlugin(const cluster::Pod& pod) {
    NOS_ASSIGN(const auto devices, doubles::ReadMigDevices(flags_.nvml));
    auto plugin = std::make_unique<kubelet::DevicePluginServer>(
        kubelet::DevicePluginOptions{.folder = flags_.folder + "/device-plugins"});
    NOS_RETURN_IF_ERROR(plugin->Offer(devices));
    plugins_[pod.meta.uid] = std::move(plugin);
    return Status::Ok();
  }
  Status FollowOffers() {
    std::ifstream file(flags_.offers);
    std::vector<kubelet::OfferedDevice> devices;
    for (std::string resource, id; file >> resource >> id;) devices.push_back({resource, id});
    if (follows_ != nullptr && devices == offers_) return Status::Ok();
    if (follows_ == nullptr) {
      follows_ = std::make_unique<kubelet::DevicePluginServer>(
          kubelet::DevicePluginOptions{.folder = flags_.folder + "/device-plugins"});
    }
    NOS_RETURN_IF_ERROR(follows_->Offer(devices));
    offers_ = std::move(devices);
    return Status::Ok();
  }
  void Journal(const std::string& event, const std::string& id, const std::string& pod) const {
    if (!flags_.journal.empty()) {
      doubles::AppendToJournal(flags_.journal, event + " " + id + " " + pod);
    }
  }
  void Forget(const std::string& key) {
    const auto held = held_.find(key);
    if (held != held_.end()) {
      for (const std::string& id : held->second) Journal("freed", id, key);
      held_.erase(held);
    }
    const size_t slash = key.find('/');
    kubelet_.Remove(key.substr(0, slash), key.substr(slash + 1));
  }
  Status ReportPhase(const cluster::Pod& pod, const std::string& phase, const std::string& message,
                     Time now) {
    const std::string time = FormatTime(now);
    const bool runs = phase == "Running";
    JsonObject status{{"phase", phase},
                      {"startTime", time},
                      {"conditions", JsonArray{{{"type", "Ready"},
                                                {"status", runs ? "True" : "False"},
                                                {"lastTransitionTime", time}}}}};
    if (phase == "Failed") {
      status["reason"] = "UnexpectedAdmissionError";
      status["message"] = message;
    }
    const Json patch = {{"metadata", {{"uid", pod.meta.uid}}}, {"status", std::move(status)}};
    return client_
        .Patch(kube::kPods, pod.meta.ns, pod.meta.name, kube::PatchType::kStrategic, patch,
               "status")
        .status();
  }

  const Flags& flags_;
  const SystemClock clock_;
  kube::Client client_;
  WakeSignal& bell_;
  KubeletDouble kubelet_;
  kube::Cache<cluster::Pod> pods_;
  std::map<std::string, Admitted> admitted_;           // by "ns/name"
  std::map<std::string, std::set<std::string>> held_;  // devices, by "ns/name"
  std::map<std::string, std::unique_ptr<kubelet::DevicePluginServer>> plugins_;  // by the pod's UID
  std::unique_ptr<kubelet::DevicePluginServer> follows_;  // for Flags::offers
  std::vector<kubelet::OfferedDevice> offers_;
  Time reported_at_{};
};

int Run(const Flags& flags) {
  sigset_t ending;
  sigemptyset(&ending);
  sigaddset(&ending, SIGTERM);
  sigaddset(&ending, SIGINT);
  pthread_sigmask(SIG_BLOCK, &ending, nullptr);
  std::filesystem::create_directories(flags.folder + "/device-plugins");
  auto connection = kube::LoadConnection(flags.kubeconfig, "");
  if (!connection.ok()) {
    std::cerr << "nos-node-double: " << connection.status().message() << "\n";
    return 2;
  }
  kube::HttpTransport transport(std::move(connection).value(), {});
  WakeSignal bell;
  std::atomic<bool> stop{false};
  std::thread signals([&] {
    int signal = 0;
    sigwait(&ending, &signal);
    stop = true;
    bell.Ring();
  });
  {
    NodeDouble node(flags, transport, bell);
    while (!stop) {
      const Duration wait = node.Turn();
      bell.Wait(wait);
    }
  }
  signals.join();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  CLI::App app("A node without containers, for tests");
  app.add_option("--kubeconfig", flags.kubeconfig)->required();
  app.add_option("--name", flags.name)->required();
  app.add_option("--folder", flags.folder)->required();
  app.add_option("--label", flags.labels);
  app.add_option("--plugin", flags.plugin);
  app.add_option("--nvml", flags.nvml);
  app.add_option("--offers", flags.offers);
  app.add_option("--journal", flags.journal);
  CLI11_PARSE(app, argc, argv);
  return Run(flags);
}
