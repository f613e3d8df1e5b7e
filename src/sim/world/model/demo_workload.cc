#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "gpu/modes.h"
#include "gpu/product.h"
#include "gpu/shares.h"
#include "sim/workload.h"

namespace nos::sim {
namespace {

constexpr auto kSecond = std::chrono::seconds(1);
constexpr int kMaxClaims = 16;  // of one pod of the demonstration

// Prefix of the names of pods for this GPU model, if there are several models.
std::string PrefixOf(const gpu::Model& model) {
  std::string prefix = model.counted() ? model.name() : gpu::ProductOf(model.name());
  if (!model.counted() && model.FindProfile(gpu::kWholeGpu)) prefix += "-hybrid";
  std::ranges::replace(prefix, '+', '-');
  return ToLower(prefix + "-");
}

class Demo {
 public:
  Demo(const gpu::Model& model, int gpus, std::string prefix, Random& random,
       std::vector<PodSpec>& pods)
      : small_(PlainProfile(model, 1)),
        medium_(PlainProfile(model, 2)),
        large_(PlainProfile(model, model.compute_slices() / 2)),
        whole_(PlainProfile(model, model.compute_slices())),
        compute_(model.compute_slices()),
        gpus_(gpus),
        prefix_(std::move(prefix)),
        random_(random),
        pods_(pods) {}

  void Write() {
    const int half = std::max(1, gpus_ / 2);
    Add(half * 2, "web", small_, 0, {}, 0);
    Add(half, "api", medium_, 2, {}, 0);
    if (gpus_ > 1) Add(half, "search", large_, 4, {}, 0);
    Add((gpus_ - gpus_ / 2) * std::max(1, compute_ - 4), "batch", small_, 8, 45 * kSecond, 0);
    if (gpus_ > 1) Add(std::max(1, gpus_ / 4), "train", whole_, 30, 60 * kSecond, 0);
    if (gpus_ > 1) AddSpanning();
    Add(std::max(1, gpus_ / 4), "urgent", large_, 75, 40 * kSecond, 100);
    Add(gpus_, "night", small_, 150, 120 * kSecond, 0);
  }

  // Pods for whole GPUs and for time slices.
  void WritePlain() {
    constexpr int kTurns = 3;
    Add(1, "whole", "gpu", 3, 60 * kSecond, 0);
    Add(kTurns, "turn", "shared", 5, 90 * kSecond, 0);
  }

 private:
  void Add(int count, const char* name, const std::string& profile, int at,
           std::optional<std::chrono::seconds> run, int priority) {
    for (int i = 1; i <= count; ++i) {
      PodSpec pod;
      pod.name = fmt::format("{}{}-{}", prefix_, name, i);
      pod.containers = {{{profile, 1}}};
      pod.cpu = Quantity::FromMilli(500);
      pod.priority = priority;
      pod.labels = {{"app", name}};
      pod.arrival = at * kSecond + std::chrono::milliseconds(random_.Below(4000));
      if (run) pod.run = *run + std::chrono::seconds(random_.Below(20));
      pods_.push_back(std::move(pod));
    }
  }

  void AddSpanning() {
    Add(1, "pair", large_, 50, 60 * kSecond, 0);
    pods_.back().containers = {{{large_, 1}}, {{large_, 1}}};
  }

  std::string small_, medium_, large_, whole_;
  int compute_, gpus_;
  std::string prefix_;
  Random& random_;
  std::vector<PodSpec>& pods_;
};

}  // namespace

std::string PlainProfile(const gpu::Model& model, int compute) {
  if (model.counted()) {
    const int gib = std::max(1, model.slots() * compute / model.compute_slices());
    return fmt::format("{}gb", std::min(gib, gpu::kMaxShareGib));
  }
  const gpu::Profile* best = nullptr;
  for (const gpu::Profile& profile : model.profiles()) {
    const bool plain = profile.name.find_first_of("+-") == std::string::npos;
    if (!plain || gpu::IsPlain(profile) || profile.compute > compute) continue;
    const bool better = best == nullptr || profile.compute > best->compute ||
                        (profile.compute == best->compute && profile.memory_mib < best->memory_mib);
    if (better) best = &profile;
  }
  return best == nullptr ? model.profiles()[0].name : best->name;
}

std::vector<PodSpec> DemoWorkload(const std::vector<const gpu::Model*>& gpus, uint64_t seed) {
  std::map<std::string, std::pair<const gpu::Model*, int>> models;
  for (const auto* model : gpus) {
    models[model->name()].first = model;
    ++models[model->name()].second;
  }
  Random random(seed);
  std::vector<PodSpec> pods;
  for (const auto& [name, entry] : models) {
    const std::string prefix = models.size() == 1 ? "" : PrefixOf(*entry.first);
    Demo demo(*entry.first, entry.second, prefix, random, pods);
    demo.Write();
    if (!entry.first->counted() && entry.first->FindProfile(gpu::kWholeGpu)) demo.WritePlain();
  }
  if (!gpus.empty()) {
    PodSpec greedy;
    greedy.name = "greedy";
    greedy.containers = {{{PlainProfile(*gpus[0], 1), 1000}}};
    greedy.arrival = 15 * kSecond;
    pods.push_back(std::move(greedy));
  }
  return pods;
}

ClaimDemo DemoClaims(const std::vector<const gpu::Model*>& gpus, uint64_t seed) {
  ClaimDemo demo{{}, DemoWorkload(gpus, seed)};
  std::map<std::string, std::string> profiles;  // by template
  for (PodSpec& pod : demo.pods) {
    pod.name = "claim-" + pod.name;
    for (auto& container : pod.containers) {
      for (const auto& [profile, count] : std::exchange(container, {})) {
        std::string name = profile;
        std::ranges::replace(name, '.', '-');
        profiles[name] = profile;
        const int claims = std::min(count, kMaxClaims);
        for (int i = 0; i < claims; ++i) pod.claims.push_back({"", name});
      }
    }
    pod.containers.resize(1);
  }
  for (const auto& [name, profile] : profiles) {
    demo.templates.push_back(ClaimTemplateObject(name, profile));
  }
  return demo;
}

}  // namespace nos::sim
