#include "study/churn/mix.h"

#include <fmt/core.h>

#include <array>
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>
#include <string_view>

#include "codec/yaml.h"
#include "gpu/fragmentation.h"

namespace nos::study {
namespace {

constexpr std::array kSizes = {1, 2, 3, 4, 7};

struct NamedMix {
  std::string_view name;
  std::array<double, kSizes.size()> weights;  // parallel to kSizes
};

constexpr std::array kNamedMixes = {
    NamedMix{"uniform", {20, 20, 20, 20, 20}}, NamedMix{"skew-small", {80, 10, 5, 3, 2}},
    NamedMix{"skew-big", {2, 3, 5, 10, 80}},   NamedMix{"bimodal", {50, 0, 0, 0, 50}},
    NamedMix{"inference", {60, 20, 10, 8, 2}},
};

// The plain profile of this size, else the next larger one, else the largest.
gpu::ProfileId ProfileForSize(const gpu::Model& model, int size) {
  const std::vector<gpu::ProfileId> plain = gpu::PlainProfiles(model);
  for (const gpu::ProfileId p : plain) {
    if (model.profile(p).compute >= size) return p;
  }
  return plain.back();
}

Mix FromWeights(const std::map<gpu::ProfileId, double>& weights) {
  Mix mix;
  for (const auto& [profile, weight] : weights) mix.push_back({profile, weight});
  return mix;
}

Mix OnModel(const NamedMix& named, const gpu::Model& model) {
  std::map<gpu::ProfileId, double> weights;
  for (size_t i = 0; i < kSizes.size(); ++i) {
    if (named.weights[i] > 0) weights[ProfileForSize(model, kSizes[i])] += named.weights[i];
  }
  return FromWeights(weights);
}

Result<double> ReadWeight(const Json& value) {
  const double weight = value.is_number() ? value.to_number<double>() : -1;
  if (!std::isfinite(weight) || weight <= 0 || weight > 1e9) {
    return Invalid("the weight must be a number above 0");
  }
  return weight;
}

}  // namespace

Result<Mix> ParseMix(std::string_view text, const std::string& source, const gpu::Model& model) {
  auto documents = ParseYaml(text);
  if (!documents.ok()) return documents.status().Within(source);
  if (documents->size() != 1 || !documents->front().is_object()) {
    return Invalid(source + ": expected one mapping of profile to weight, like 1g.5gb: 60");
  }
  std::map<gpu::ProfileId, double> weights;
  for (const auto& [key, value] : documents->front().get_object()) {
    const std::string name(key);
    const auto profile = model.FindProfile(name);
    if (!profile)
      return Invalid(fmt::format("{}: {} has no profile {}", source, model.name(), name));
    const auto weight = ReadWeight(value);
    if (!weight.ok()) return weight.status().Within(name).Within(source);
    if (!weights.emplace(*profile, *weight).second) {
      return Invalid(fmt::format("{}: {} is given twice", source, name));
    }
  }
  if (weights.empty()) return Invalid(source + ": names no profile");
  return FromWeights(weights);
}

Result<Mix> LoadMix(const std::string& name_or_path, const gpu::Model& model) {
  for (const NamedMix& named : kNamedMixes) {
    if (named.name == name_or_path) return OnModel(named, model);
  }
  std::ifstream file(name_or_path);
  std::stringstream text;
  if (name_or_path.empty() || !(text << file.rdbuf())) {
    return NotFound("mix \"" + name_or_path +
                    "\" is neither uniform, skew-small, skew-big, bimodal, inference nor a "
                    "readable file");
  }
  return ParseMix(text.str(), name_or_path, model);
}

}  // namespace nos::study
