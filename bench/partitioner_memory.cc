// Memory of `nos partitioner` with a large cluster in its caches: a generated cluster on the
// sandbox's API server, over HTTP.
//
//   nos-partitioner-memory NOS [NODES PODS]      5000 50000
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <thread>

#include "base/file.h"
#include "base/text.h"
#include "kube/client.h"
#include "sim/serve.h"

namespace {

using nos::Json;
using nos::JsonArray;

void Fill(nos::kube::Client& client, int64_t nodes, int64_t pods) {
  for (int64_t i = 0; i < nodes; ++i) {
    nos::JsonObject annotations;
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
    (void)client.Create(
        nos::kube::kPods, "default",
        {{"metadata",
          {{"name", fmt::format("train-7d9c5bfb8d-{:05}", i)}, {"labels", {{"app", "train"}}}}},
         {"spec",
          {{"nodeName", fmt::format("gpu-{:04}", i % nodes)},
           {"containers", JsonArray{container}}}}});
  }
}

std::string Field(pid_t process, const std::string& name) {
  std::ifstream status(fmt::format("/proc/{}/status", process));
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(name + ":")) return std::string(nos::Trim(line.substr(name.size() + 1)));
  }
  return "?";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: nos-partitioner-memory NOS [NODES PODS]\n";
    return 2;
  }
  const int64_t nodes = argc > 3 ? nos::ParseInt(argv[2]).value_or(5000) : 5000;
  const int64_t pods = argc > 3 ? nos::ParseInt(argv[3]).value_or(50000) : 50000;
  const nos::SystemClock clock;
  nos::sim::ApiServer api(clock);
  nos::kube::Client client(api);
  Fill(client, nodes, pods);
  const auto server = nos::sim::ServeApi(api);
  if (!server.ok()) return 1;
  const std::filesystem::path folder = std::filesystem::temp_directory_path();
  const std::string kubeconfig = folder / fmt::format("nos-bench-{}.yaml", getpid());
  const std::string config = kubeconfig + ".config";
  const std::string log = kubeconfig + ".log";
  std::ofstream(kubeconfig) << nos::sim::KubeconfigFor("127.0.0.1", (*server)->port());
  std::ofstream(config)
      << "apiVersion: config.nos.nebuly.com/v1alpha1\nkind: GpuPartitionerConfig\n"
         "health: {healthProbeBindAddress: \"0\"}\n"
         "metrics: {bindAddress: \"0\"}\n";
  const auto begun = std::chrono::steady_clock::now();
  const pid_t process = fork();
  if (process == 0) {
    (void)!freopen(log.c_str(), "w", stderr);
    execl(argv[1], argv[1], "partitioner", "--config", config.c_str(), "--kubeconfig",
          kubeconfig.c_str(), nullptr);
    _exit(127);
  }
  const auto read = [&] {
    const auto text = nos::ReadFile(log);
    return text.ok() && text->find("synced caches") != std::string::npos;
  };
  while (!read() && waitpid(process, nullptr, WNOHANG) == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  const double took =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  std::this_thread::sleep_for(std::chrono::seconds(5));  // its first reconciliations
  fmt::print("{} nodes, {} pods: read after {:.1f} s; resident {}, at most {}\n", nodes, pods, took,
             Field(process, "VmRSS"), Field(process, "VmHWM"));
  kill(process, SIGTERM);
  int status = 0;
  waitpid(process, &status, 0);
  for (const std::string& file : {kubeconfig, config, log}) std::filesystem::remove(file);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
