// Memory of a daemon with a large cluster in its caches, under a limit of memory like that of its
// pod: a generated cluster on the sandbox's API server, over HTTP.
//
//   nos-daemon-memory NOS DAEMON LIMIT [NODES PODS]     partitioner 512 5000 50000
//
// DAEMON is partitioner, scheduler, operator or autoscaler; LIMIT is in MiB. The last 1,000 pods
// are pending. The limit is that of a control group (version 1 or 2), which only root can make;
// without one the figures are printed alone. Prints a row of a table: daemon, limit, the group's
// peak (it counts the pages of files, as the kubelet's limit does), the process's peak. Ends with 1
// if the daemon ended or was killed.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <thread>

#include "base/file.h"
#include "base/text.h"
#include "kube/client.h"
#include "sim/serve.h"

namespace {

namespace fs = std::filesystem;
using nos::Json;
using nos::JsonArray;
using nos::JsonObject;
constexpr int64_t kPending = 1000;

void Fill(nos::kube::Client& client, int64_t nodes, int64_t pods) {
  for (int64_t i = 0; i < nodes; ++i) {
    JsonObject annotations;
    for (int gpu = 0; gpu < 8; ++gpu) {
      annotations[fmt::format("nos.nebuly.com/status-layout-{}", gpu)] =
          "1g.5gb@0:used,1g.5gb@1:used,2g.10gb@2:used,3g.20gb@4:used";
    }
    (void)client.Create(
        nos::kube::kNodes, "",
        {{"metadata",
          {{"name", fmt::format("gpu-{:04}", i)},
           {"labels",
            {{"nos.nebuly.com/gpu-partitioning", "mig"},
             {"nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB"},
             {"nvidia.com/gpu.count", "8"}}},
           {"annotations", std::move(annotations)}}},
         {"status", {{"allocatable", {{"cpu", "96"}, {"memory", "1Ti"}, {"pods", "250"}}}}}});
  }
  for (int64_t i = 0; i < pods; ++i) {
    const Json limits = {{"cpu", "4"}, {"memory", "16Gi"}, {"nvidia.com/mig-1g.5gb", "1"}};
    const Json container = {
        {"name", "main"}, {"image", "example/train:1.2.3"}, {"resources", {{"limits", limits}}}};
    JsonObject spec{{"schedulerName", "nos-scheduler"}, {"containers", JsonArray{container}}};
    if (i < pods - kPending) spec["nodeName"] = fmt::format("gpu-{:04}", i % nodes);
    (void)client.Create(
        nos::kube::kPods, "default",
        {{"metadata",
          {{"name", fmt::format("train-7d9c5bfb8d-{:05}", i)}, {"labels", {{"app", "train"}}}}},
         {"spec", std::move(spec)}});
  }
}

// The kind of the daemon's configuration; "" if there is no such daemon.
std::string KindOf(const std::string& daemon) {
  static const std::map<std::string, std::string> kinds = {{"partitioner", "GpuPartitionerConfig"},
                                                           {"scheduler", "SchedulerConfig"},
                                                           {"operator", "OperatorConfig"},
                                                           {"autoscaler", "AutoscalerConfig"}};
  const auto found = kinds.find(daemon);
  return found == kinds.end() ? "" : found->second;
}

std::string ConfigOf(const std::string& daemon) {
  std::string text;
  if (daemon == "scheduler") {
    text =
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "leaderElection: {leaderElect: false}\nprofiles: [{schedulerName: nos-scheduler}]\n---\n";
  }
  text += fmt::format(
      "apiVersion: config.nos.nebuly.com/v1alpha1\nkind: {}\n"
      "health: {{healthProbeBindAddress: \"0\"}}\nmetrics: {{bindAddress: \"0\"}}\n",
      KindOf(daemon));
  if (daemon != "scheduler") text += "leaderElection: {leaderElect: false}\n";
  if (daemon == "autoscaler") text += "placeholders: {image: \"example/nos:1\"}\n";
  return text;
}

std::string Field(pid_t process, const std::string& name) {
  std::ifstream status(fmt::format("/proc/{}/status", process));
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(name + ":")) return std::string(nos::Trim(line.substr(name.size() + 1)));
  }
  return "?";
}

// A control group with a limit of memory, for one process. Removed at the end.
class MemoryGroup {
 public:
  explicit MemoryGroup(int64_t limit_mib) {
    const bool second = fs::exists("/sys/fs/cgroup/cgroup.controllers");
    folder_ = fs::path(second ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory") /
              fmt::format("nos-bench-{}", getpid());
    std::error_code fault;
    fs::create_directory(folder_, fault);
    limit_ = folder_ / (second ? "memory.max" : "memory.limit_in_bytes");
    peak_ = folder_ / (second ? "memory.peak" : "memory.max_usage_in_bytes");
    there_ = !fault && Write(limit_, fmt::to_string(limit_mib << 20));
  }
  ~MemoryGroup() {
    std::error_code fault;
    fs::remove(folder_, fault);
  }
  MemoryGroup(const MemoryGroup&) = delete;

  // Called in the child.
  void Enter() const {
    if (there_) (void)Write(folder_ / "cgroup.procs", fmt::to_string(getpid()));
  }
  std::string Peak() const {
    const auto text = nos::ReadFile(peak_.string());
    if (!there_ || !text.ok()) return "-";
    return fmt::format("{} MiB", nos::ParseInt(nos::Trim(*text)).value_or(0) >> 20);
  }

 private:
  static bool Write(const fs::path& file, const std::string& text) {
    std::ofstream out(file);
    out << text << std::flush;
    return out.good();
  }

  fs::path folder_, limit_, peak_;
  bool there_ = false;
};

struct Files {
  Files(const std::string& daemon, uint16_t port)
      : kubeconfig(fs::temp_directory_path() / fmt::format("nos-bench-{}.yaml", getpid())),
        config(kubeconfig + ".config"),
        log(kubeconfig + ".log") {
    std::ofstream(kubeconfig) << nos::sim::KubeconfigFor("127.0.0.1", port);
    std::ofstream(config) << ConfigOf(daemon);
  }
  ~Files() {
    for (const std::string& file : {kubeconfig, config, log}) fs::remove(file);
  }
  Files(const Files&) = delete;

  const std::string kubeconfig, config, log;
};

pid_t StartDaemon(const char* nos, const char* daemon, const Files& files,
                  const MemoryGroup& group) {
  const pid_t process = fork();
  if (process != 0) return process;
  group.Enter();
  (void)!freopen(files.log.c_str(), "w", stderr);
  execl(nos, nos, daemon, "--config", files.config.c_str(), "--kubeconfig",
        files.kubeconfig.c_str(), nullptr);
  _exit(127);
}

bool Ended(pid_t process) { return waitpid(process, nullptr, WNOHANG) != 0; }

}  // namespace

int main(int argc, char** argv) {
  const int64_t limit = argc > 3 ? nos::ParseInt(argv[3]).value_or(0) : 0;
  if (limit <= 0 || KindOf(argv[2]).empty()) {
    std::cerr << "usage: nos-daemon-memory NOS partitioner|scheduler|operator|autoscaler LIMIT_MIB "
                 "[NODES PODS]\n";
    return 2;
  }
  const int64_t nodes = argc > 5 ? nos::ParseInt(argv[4]).value_or(5000) : 5000;
  const int64_t pods = argc > 5 ? nos::ParseInt(argv[5]).value_or(50000) : 50000;
  const nos::SystemClock clock;
  nos::sim::ApiServer api(clock);
  nos::kube::Client client(api);
  Fill(client, nodes, pods);
  const auto server = nos::sim::ServeApi(api);
  if (!server.ok()) return 1;
  const MemoryGroup group(limit);
  const Files files(argv[2], (*server)->port());
  const pid_t process = StartDaemon(argv[1], argv[2], files, group);
  const auto synced = [&] {
    const auto text = nos::ReadFile(files.log);
    return text.ok() && text->find("synced caches") != std::string::npos;
  };
  const auto pause = [](std::chrono::milliseconds time) { std::this_thread::sleep_for(time); };
  bool ended = Ended(process);
  while (!ended && !synced()) {
    pause(std::chrono::milliseconds(20));
    ended = Ended(process);
  }
  // Its first reconciliations.
  for (int i = 0; !ended && i < 100; ++i) {
    pause(std::chrono::milliseconds(100));
    ended = Ended(process);
  }
  if (ended) {
    std::cerr << nos::ReadFile(files.log).value_or("") << "the daemon has ended\n";
    return 1;
  }
  fmt::print("| `nos {}` | {} MiB | {} | {} |\n", argv[2], limit, group.Peak(),
             Field(process, "VmHWM"));
  kill(process, SIGTERM);
  int status = 0;
  waitpid(process, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
