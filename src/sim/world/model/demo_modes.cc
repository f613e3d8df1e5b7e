// The default demonstration of the sandbox: all GPU sharing modes.
#include <fmt/format.h>

#include "cluster/gpu_requirements.h"
#include "sim/workload.h"

namespace nos::sim {
namespace {

using std::chrono::seconds;

constexpr seconds kServices = std::chrono::minutes(5);  // run time of the shortest one
constexpr const char* kImpossible = "greedy";           // waits for ever

class ModesDemo {
 public:
  explicit ModesDemo(uint64_t seed) : random_(seed) {}

  std::vector<PodSpec> Pods() && {
    Add(4, "web", "1g.5gb", 0, {});
    Add(2, "api", "2g.10gb", 1, {});
    Add(6, "note", "6gb", 2, {});
    Add(4, "chat", "shared", 3, {});
    Add(1, "train", "gpu", 4, seconds(45));
    Add(2, "fit", "3g.40gb", 5, seconds(40));
    Need(1, "alone", "9Gi", true, 8);
    Need(3, "need", "9Gi", false, 9);
    Add(5, "batch", "1g.5gb", 12, seconds(45));
    Ask(kImpossible, {{"1g.5gb", 1000}}, 15, {});
    Add(2, "sweep", "gpu", 20, seconds(60));
    Add(1, "urgent", "3g.20gb", 75, seconds(40), 100);
    Add(7, "night", "1g.10gb", 150, seconds(120));
    // Services make room for the teams of TeamsDemand, one after the other.
    seconds run = kServices;
    for (PodSpec& pod : pods_) {
      if (!pod.run && pod.name != kImpossible) pod.run = run += seconds(5);
    }
    return std::move(pods_);
  }

 private:
  PodSpec& Ask(const std::string& name, std::map<std::string, int> slices, int at,
               std::optional<seconds> run) {
    PodSpec& pod = pods_.emplace_back();
    pod.name = name;
    pod.containers = {std::move(slices)};
    pod.cpu = Quantity::FromMilli(500);
    pod.arrival = seconds(at) + std::chrono::milliseconds(random_.Below(1000));
    if (run) pod.run = *run + seconds(random_.Below(10));
    return pod;
  }

  void Add(int count, const char* name, const char* profile, int at, std::optional<seconds> run,
           int priority = 0) {
    for (int i = 1; i <= count; ++i) {
      PodSpec& pod = Ask(fmt::format("{}-{}", name, i), {{profile, 1}}, at, run);
      pod.labels = {{"app", name}};
      pod.priority = priority;
    }
  }

  // host_ipc allows the webhook to choose shares: MPS clients need the host's IPC namespace.
  void Need(int count, const char* name, const char* memory, bool isolated, int at) {
    for (int i = 1; i <= count; ++i) {
      PodSpec& pod = Ask(fmt::format("{}-{}", name, i), {}, at, {});
      pod.labels = {{"app", name}};
      pod.annotations[std::string(cluster::kNeedMemory)] = memory;
      if (isolated) pod.annotations[std::string(cluster::kNeedIsolation)] = "true";
      pod.host_ipc = !isolated;
    }
  }

  Random random_;
  std::vector<PodSpec> pods_;
};

}  // namespace

std::vector<NodeSpec> ModesCluster() {
  const auto gpus = [](size_t count, const char* model) {
    return std::vector<GpuSpec>(count, GpuSpec{.model = model});
  };
  return {{.name = "node-1", .gpus = gpus(2, "A100-40GB")},
          {.name = "node-2", .gpus = gpus(4, "H100-80GB"), .hybrid = true},
          {.name = "node-3", .gpus = gpus(2, "A100-40GB"), .mps = true}};
}

std::vector<PodSpec> ModesWorkload(uint64_t seed) { return ModesDemo(seed).Pods(); }

}  // namespace nos::sim
