#include "telemetry/testing/reports.h"

#include <fmt/format.h>

#include <cmath>

#include "base/random.h"

namespace nos::telemetry {
namespace {

constexpr Millis kLayoutEvery = 300'000;
constexpr int kMemory = 40960, kSliceMemory = 4864;

// Deterministic: the same sequence for the same subject and time.
Random At(int node, int gpu, int slice, Millis at) {
  Random random(static_cast<uint64_t>(((node * 64 + gpu) * 64 + slice) * 7919) ^
                static_cast<uint64_t>(at) * 0x9e3779b97f4a7c15ULL);
  random.Next();
  return random;
}

// Load of a job: about half an hour of constant load, then a new level.
double LoadOf(int node, int gpu, int slice, Millis at) {
  Random phase = At(node, gpu, slice, at / 1'800'000);
  const double level = phase.Chance(0.2) ? 0 : 0.3 + 0.6 * phase.Uniform();
  Random now = At(node, gpu, slice, at);
  return std::round(std::min(1.0, level * (0.9 + 0.2 * now.Uniform())) * 100) / 100;
}

Json InstanceRecord(int node, int gpu, int slice, Millis at) {
  Random phase = At(node, gpu, slice, at / 600'000);
  return {{"kind", "instance"},
          {"at", at},
          {"gpu", GpuName(node, gpu)},
          {"instance", InstanceName(node, gpu, slice)},
          {"metrics",
           {{"utilization", LoadOf(node, gpu, slice, at)},
            {"memory_used", static_cast<int64_t>(phase.Below(kSliceMemory))},
            {"memory_total", kSliceMemory}}}};
}

Json GpuRecord(int node, int gpu, int slices, Millis at) {
  Random now = At(node, gpu, 63, at);
  double load = 0;
  for (int i = 0; i < slices; ++i) load += LoadOf(node, gpu, i, at) / std::max(1, slices);
  const double power = 60 + 340 * load + static_cast<double>(now.Below(4000)) / 1000;
  Random phase = At(node, gpu, 62, at / 600'000);
  JsonObject unmeasured;
  if (slices > 0) unmeasured["utilization"] = "not measured on a GPU with MIG";
  return {{"kind", "gpu"},
          {"at", at},
          {"gpu", GpuName(node, gpu)},
          {"index", gpu},
          {"metrics",
           {{"memory_used", static_cast<int64_t>(phase.Below(kMemory))},
            {"memory_total", kMemory},
            {"power", std::round(power * 1000) / 1000},
            {"power_limit", 400},
            {"temperature", static_cast<int64_t>(35 + load * 40 + now.Uniform() * 2)},
            {"sm_clock", load > 0.01 ? 1410 : 210},
            {"memory_clock", 1215},
            {"ecc_corrected", 0},
            {"ecc_uncorrected", 0}}},
          {"unmeasured", unmeasured}};
}

Json LayoutOf(const FleetShape& shape, int node, Millis at) {
  JsonArray gpus;
  for (int g = 0; g < shape.gpus; ++g) {
    JsonArray instances;
    for (int s = 0; s < shape.slices; ++s) {
      JsonArray holders;
      if (s + 1 < shape.slices || s == 0) {
        holders.push_back({{"namespace", fmt::format("team-{}", s % 3)},
                           {"pod", fmt::format("pod-{}-{}-{}", node, g, s)},
                           {"container", "main"}});
      }
      instances.push_back({{"id", s + 1},
                           {"instance", InstanceName(node, g, s)},
                           {"profile", "1g.5gb"},
                           {"start", s},
                           {"size", 1},
                           {"holders", std::move(holders)}});
    }
    gpus.push_back({{"index", g},
                    {"gpu", GpuName(node, g)},
                    {"product", "NVIDIA A100-SXM4-40GB"},
                    {"memory", kMemory},
                    {"slots", shape.slices > 0 ? 8 : 0},
                    {"mig", shape.slices > 0},
                    {"health", ""},
                    {"instances", std::move(instances)},
                    {"holders", JsonArray()}});
  }
  return {{"kind", "layout"},
          {"at", at},
          {"node", NodeName(node)},
          {"mode", "mig"},
          {"gpus", std::move(gpus)}};
}

}  // namespace

std::string NodeName(int node) { return fmt::format("gpu-{:04}", node); }
std::string GpuName(int node, int gpu) { return fmt::format("GPU-{:08x}-{:02x}", node, gpu); }
std::string InstanceName(int node, int gpu, int slice) {
  return fmt::format("MIG-{:08x}-{:02x}-{:02x}", node, gpu, slice);
}

Json EnvelopeOf(const std::string& source, int64_t sequence, JsonArray records,
                const std::string& boot) {
  return {{"schema", 1},
          {"cluster", "prod"},
          {"source", source},
          {"boot", boot},
          {"sequence", sequence},
          {"sent_at", kReportStart},
          {"lost", 0},
          {"records", std::move(records)}};
}

Json PodRecord(Millis at, const std::string& ns, const std::string& name, const std::string& state,
               const std::string& resource, const std::string& node) {
  const bool placed = !node.empty();
  return {{"kind", "pod"},
          {"at", at},
          {"uid", fmt::format("uid-{}-{}", ns, name)},
          {"namespace", ns},
          {"name", name},
          {"node", node},
          {"state", state},
          {"reason", placed ? "" : "Unschedulable"},
          {"message", placed ? "" : "no GPU has a free slice of this size"},
          {"requests", {{resource, 1}, {"cpu", 2}, {"memory", 4096}}},
          {"priority", 0},
          {"quota", ns},
          {"capacity", "in-quota"},
          {"created", kReportStart - 60'000},
          {"scheduled", placed ? at : 0},
          {"started", placed ? at : 0},
          {"finished", 0}};
}

Json NodeReport(const FleetShape& shape, int node, Millis at, int64_t sequence,
                const std::string& boot) {
  JsonArray records;
  if ((at - kReportStart) % kLayoutEvery < 10'000) records.push_back(LayoutOf(shape, node, at));
  for (int g = 0; g < shape.gpus; ++g) {
    records.push_back(GpuRecord(node, g, shape.slices, at));
    for (int s = 0; s < shape.slices; ++s) records.push_back(InstanceRecord(node, g, s, at));
  }
  return EnvelopeOf("node/" + NodeName(node), sequence, std::move(records), boot);
}

}  // namespace nos::telemetry
