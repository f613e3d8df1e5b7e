// CEL selectors: compiling, and evaluating for one device.
#include <benchmark/benchmark.h>

#include "cel/program.h"

namespace nos::cel {
namespace {

constexpr const char* kSelectors[] = {
    "device.driver == 'gpu.nvidia.com'",
    "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].profile == '1g.10gb'",
    "device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('10Gi')) >= 0",
    "device.attributes['gpu.nvidia.com'].productName.matches('^NVIDIA (H|B)[0-9]+')",
    "device.attributes['gpu.nvidia.com'].all(k, k != 'x')",
};

// A slice as NVIDIA's driver publishes it.
Device Slice() {
  DeviceSpec spec;
  spec.driver = "gpu.nvidia.com";
  spec.attributes = {{"type", std::string("mig")},
                     {"parentUUID", std::string("GPU-00000000-0000-0000-0000-000000000000")},
                     {"profile", std::string("1g.10gb")},
                     {"productName", std::string("NVIDIA H100 80GB HBM3")},
                     {"brand", std::string("Nvidia")},
                     {"architecture", std::string("Hopper")},
                     {"cudaComputeCapability", Version{"9.0.0"}},
                     {"driverVersion", Version{"570.86.15"}},
                     {"cudaDriverVersion", Version{"12.8.0"}},
                     {"resource.kubernetes.io/pcieRoot", std::string("pci0000:00")}};
  spec.capacity = {{"memory", "9856Mi"}, {"multiprocessors", "16"}, {"copyEngines", "1"}};
  return Device(spec);
}

void BM_Compile(benchmark::State& state) {
  for (auto _ : state) {
    benchmark::DoNotOptimize(Program::Compile(kSelectors[state.range(0)]));
  }
}
BENCHMARK(BM_Compile)->DenseRange(0, 4);

void BM_Evaluate(benchmark::State& state) {
  const auto program = Program::Compile(kSelectors[state.range(0)]);
  const Device device = Slice();
  for (auto _ : state) benchmark::DoNotOptimize((*program)->Evaluate(device));
}
BENCHMARK(BM_Evaluate)->DenseRange(0, 4);

}  // namespace
}  // namespace nos::cel
