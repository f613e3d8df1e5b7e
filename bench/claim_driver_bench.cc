// nos as the driver of ResourceClaims (agent/claims/driver.h): the time from the kubelet's call to
// the answer, without the kubelet, the network and NVIDIA's driver. The API server and the files of
// the host are doubled; checkpoint and CDI specification are written to a real folder below
// $TMPDIR.
//
//   build/release/bench/nos_bench_claim_driver
//
// ready: the instance exists. eight_gpus: the instances of eight claims are created, on eight GPUs
// or one after the other on one, by a driver that takes 100 ms for each.
#include <benchmark/benchmark.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "agent/claims/driver.h"
#include "agent/claims/gpu_queues.h"
#include "base/log.h"
#include "device/forwarding_backend.h"
#include "device/sim_gpus.h"
#include "kube/testing/fake_api.h"

namespace nos::agent {
namespace {

constexpr const char* kNode = "gpu-1";
constexpr int kGpus = 8;

// The driver's time for an instance.
class SlowGpus final : public device::ForwardingBackend {
 public:
  // `mutex`: for the simulated GPUs, which belong to one thread.
  SlowGpus(device::Backend& gpus, std::mutex& mutex, std::chrono::milliseconds takes)
      : ForwardingBackend(gpus), mutex_(mutex), takes_(takes) {}
  Result<std::vector<device::GpuInfo>> ListGpus() override {
    const std::lock_guard lock(mutex_);
    return ForwardingBackend::ListGpus();
  }
  Result<std::vector<device::GpuInstance>> ListInstances(int gpu) override {
    const std::lock_guard lock(mutex_);
    return ForwardingBackend::ListInstances(gpu);
  }
  Result<device::GpuInstance> Create(int gpu, const std::string& profile, uint8_t start) override {
    std::this_thread::sleep_for(takes_);
    const std::lock_guard lock(mutex_);
    return ForwardingBackend::Create(gpu, profile, start);
  }

 private:
  std::mutex& mutex_;
  const std::chrono::milliseconds takes_;
};

// A node of eight H100 with a claim driver.
class Node {
 public:
  explicit Node(std::chrono::milliseconds takes)
      : queues_([this, takes] { return std::make_unique<SlowGpus>(gpus_, gpus_mutex_, takes); }) {
    std::string pattern = std::filesystem::temp_directory_path() / "nos-claims-XXXXXX";
    root_ = mkdtemp(pattern.data());
    File("proc/devices", "Character devices:\n195 nvidia\n235 nvidia-caps\n511 nvidia-uvm\n");
    File("root/usr/lib/libcuda.so.550.54.15", "");
    std::filesystem::create_symlink("libcuda.so.550.54.15", root_ / "root/usr/lib/libcuda.so.1");
    for (int gpu = 0; gpu < kGpus; ++gpu) {
      const std::string number = std::to_string(gpu);
      File("proc/driver/nvidia/gpus/0000:0" + number + ":00.0/information",
           "GPU UUID: " + gpus_.Info(gpu).uuid + "\nDevice Minor: " + number + "\n");
      for (int instance = 0; instance < 15; ++instance) {
        const std::string folder = "proc/driver/nvidia/capabilities/gpu" + number + "/mig/gi" +
                                   std::to_string(instance) + "/";
        const int minor = 100 * gpu + 2 * instance;
        File(folder + "access", "DeviceFileMinor: " + std::to_string(minor) + "\n");
        File(folder + "ci0/access", "DeviceFileMinor: " + std::to_string(minor + 1) + "\n");
      }
    }
    ClaimDriverOptions options;
    options.node = kNode;
    options.checkpoint = root_ / "claims.json";
    options.cdi_folder = root_ / "cdi";
    options.host = {root_ / "root", "/", root_ / "proc", root_ / "dev"};
    ClaimCollaborators others;
    others.call = [this](const std::function<void(kube::Client&)>& call) {
      kube::Client client(api_);
      call(client);
    };
    others.run = [this](int gpu, std::function<void()> task) {
      return queues_.Run(gpu, std::move(task));
    };
    others.backend = [this](int gpu) -> device::Backend& { return queues_.BackendOf(gpu); };
    others.held = [] { return Result<std::set<std::string>>(std::set<std::string>()); };
    others.wake = [] {};
    driver_ = std::make_unique<ClaimDriver>(options, others);
    if (!driver_->Load().ok()) std::abort();
    driver_->SetGpus(Facts());
  }
  ~Node() {
    queues_.Stop();
    std::filesystem::remove_all(root_);
  }

  // Stores a claim as a scheduler allocates it.
  void Allocate(const std::string& name, int gpu, int start) {
    const auto profile = model_->FindProfile("1g.10gb");
    if (!profile) std::abort();
    const std::string device =
        dra::DeviceNameOf(gpu, model_->profile(*profile), static_cast<uint8_t>(start));
    const Json result = {{"request", "slice"},
                         {"driver", "gpu.nos.nebuly.com"},
                         {"pool", kNode},
                         {"device", device}};
    api_.Put({{"apiVersion", "resource.k8s.io/v1"},
              {"kind", "ResourceClaim"},
              {"metadata", {{"namespace", "team"}, {"name", name}, {"uid", name + "-uid"}}},
              {"spec", JsonObject()},
              {"status", {{"allocation", {{"devices", {{"results", JsonArray{result}}}}}}}}});
  }
  // Returns once all are answered. False: one is refused.
  bool Prepare(const std::vector<std::string>& names) {
    size_t answers = 0;
    bool all = true;
    for (const std::string& name : names) {
      driver_->Prepare({"team", name, name + "-uid"}, [&](const auto& got) {
        const std::lock_guard lock(mutex_);
        ++answers;
        all = all && got.ok();
        changed_.notify_all();
      });
    }
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return answers == names.size(); });
    return all;
  }
  bool Unprepare(const std::string& name) {
    bool ok = false;
    driver_->Unprepare({"team", name, name + "-uid"},
                       [&](const Status& status) { ok = status.ok(); });
    return ok;
  }

 private:
  void File(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  std::vector<dra::GpuOfDriver> Facts() {
    std::vector<dra::GpuOfDriver> facts;
    const std::vector<device::GpuInfo> infos = gpus_.ListGpus().value();
    for (const device::GpuInfo& info : infos) {
      dra::GpuOfDriver gpu;
      gpu.index = info.index;
      gpu.uuid = info.uuid;
      gpu.product = info.product;
      gpu.model = model_;
      facts.push_back(std::move(gpu));
    }
    return facts;
  }

  std::filesystem::path root_;
  const gpu::Model* model_ = gpu::Catalogue::Builtin().FindByName("H100-80GB");
  device::SimGpus gpus_{
      std::vector<device::SimGpuSpec>(kGpus, {model_, "NVIDIA H100 80GB HBM3"}), kNode, {}};
  std::mutex gpus_mutex_;
  kube::FakeApi api_;
  std::mutex mutex_;
  std::condition_variable changed_;
  GpuQueues queues_;
  std::unique_ptr<ClaimDriver> driver_;
};

void Ready(benchmark::State& state) {
  SetLogLevel(LogLevel::kError);
  Node node(std::chrono::milliseconds(0));
  node.Allocate("claim", 0, 0);
  for (auto _ : state) {
    if (!node.Prepare({"claim"})) return state.SkipWithError("the claim was refused");
    state.PauseTiming();
    if (!node.Unprepare("claim")) return state.SkipWithError("the claim is still prepared");
    state.ResumeTiming();
  }
}
BENCHMARK(Ready)->Unit(benchmark::kMillisecond)->UseRealTime();

void EightInstances(benchmark::State& state) {
  SetLogLevel(LogLevel::kError);
  const bool one_gpu = state.range(0) == 1;
  for (auto _ : state) {
    state.PauseTiming();
    {
      Node node(std::chrono::milliseconds(100));
      const int claims = one_gpu ? 7 : kGpus;  // an H100 has room for seven
      std::vector<std::string> names;
      for (int i = 0; i < claims; ++i) {
        names.push_back("claim-" + std::to_string(i));
        node.Allocate(names.back(), one_gpu ? 0 : i, one_gpu ? i : 0);
      }
      state.ResumeTiming();
      if (!node.Prepare(names)) return state.SkipWithError("a claim was refused");
      state.PauseTiming();
    }
    state.ResumeTiming();
  }
}
BENCHMARK(EightInstances)
    ->ArgName("gpus")
    ->Arg(8)
    ->Arg(1)
    ->Iterations(3)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

}  // namespace
}  // namespace nos::agent
