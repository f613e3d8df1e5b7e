#include "sim/world/run/chaos_stolen_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "agent/conditions.h"
#include "cluster/annotations.h"
#include "sim/specs.h"

namespace nos::sim {
namespace {

constexpr double kPause = 2;           // seconds, mean
constexpr size_t kLongText = 100'000;  // an object's annotations may have 256 KiB
const cluster::Taint kTaint{"stolen", "", "NoSchedule"};
// Indices of GPUs that the node has, of GPUs that only other nodes have, and of GPUs that no node
// has.
constexpr std::array<const char*, 8> kIndices = {"0", "1", "2", "3", "7", "63", "64", "-1"};

}  // namespace

cluster::Toleration StolenNode::Toleration() { return {kTaint.key, "Exists", "", ""}; }

NodeSpec StolenNode::Draw(std::vector<const gpu::Model*> models) {
  models_ = std::move(models);
  const auto& known = world_.catalogue().models();
  models_.push_back(&*known[random_.Below(known.size())]);
  NodeSpec node;
  node.name = kName;
  node.gpus.assign(1 + random_.Below(4), GpuSpec{models_.back()->name(), {}});
  node.cpu = Quantity::FromValue(8 + static_cast<int64_t>(random_.Below(25)));
  node.taints = {kTaint};
  node.forged = true;
  return node;
}

void StolenNode::DrawToleration(PodSpec& pod) {
  if (random_.Chance(0.5)) pod.tolerations.push_back(Toleration());
}

void StolenNode::Start(Time until) {
  if (random_.Chance(0.5)) {
    world_.FindProcess(fmt::format("agent {}", kName))->Crash(until - world_.Now());
  }
  Forge(until);
}

void StolenNode::Forge(Time until) {
  const bool status = random_.Chance(0.3);
  JsonObject patch;
  if (status) {
    patch["status"] = DrawStatus();
  } else {
    JsonObject annotations;
    for (uint64_t i = 1 + random_.Below(6); i > 0; --i) {
      auto [key, value] = DrawAnnotation();
      annotations[key] = std::move(value);
    }
    patch["metadata"] = JsonObject{{"annotations", std::move(annotations)}};
  }
  const Status written = client_
                             .Patch(kube::kNodes, "", std::string(kName),
                                    kube::PatchType::kStrategic, patch, status ? "status" : "")
                             .status();
  world_.log().Note(
      "thief", fmt::format("forges {}: {}", status ? "status" : "annotations", written.ToString()));
  forged_ += written.ok() ? 1 : 0;
  const Time next = world_.Now() + FromSeconds(random_.Exponential(kPause));
  if (next < until) world_.At(next, [this, until] { Forge(until); });
}

const gpu::Model& StolenNode::DrawModel() { return *models_[random_.Below(models_.size())]; }

std::pair<std::string, Json> StolenNode::DrawAnnotation() {
  const std::string status =
      fmt::format("{}status-", random_.Chance(0.9) ? cluster::kPrefix : cluster::kOldPrefix);
  const char* const index = kIndices[random_.Below(kIndices.size())];
  const gpu::Model& model = DrawModel();
  const auto& profiles = model.profiles();
  std::string key, value;
  switch (random_.Below(8)) {
    case 0:
    case 1:
      key = fmt::format("{}layout-{}", status, index);
      value = DrawLayout();
      break;
    case 2:
      key = fmt::format("{}model-{}", status, index);
      value = model.name();
      break;
    case 3:
      key = fmt::format("{}other-model-{}", status, index);
      value = model.name();
      break;
    case 4:
      key = fmt::format("{}holders-{}", status, index);
      value = DrawHolders();
      break;
    case 5:
      key = fmt::format("{}gpu-{}-{}-{}", status, index,
                        profiles[random_.Below(profiles.size())].name,
                        random_.Chance(0.5) ? "free" : "used");
      std::ranges::replace(key, '+', '.');
      value = DrawNumber();
      break;
    case 6:
      key = cluster::kStatusPlan;
      value = DrawNumber();
      break;
    default:
      key = cluster::kPlanResult;
      value = DrawResult();
  }
  if (random_.Chance(0.05)) value.assign(random_.Below(kLongText), ',');
  return {key, random_.Chance(0.2) ? Json(nullptr) : Json(value)};
}

// Placements of some model, in any state and number; they may overlap.
std::string StolenNode::DrawLayout() {
  static constexpr std::array<const char*, 5> kStates = {":free", ":used", ":unknown", "", ":mine"};
  const gpu::Model& model = DrawModel();
  const auto& profiles = model.profiles();
  std::string layout;
  for (uint64_t i = random_.Below(8); i > 0; --i) {
    layout += fmt::format(
        "{}{}@{}{}", layout.empty() ? "" : ",", profiles[random_.Below(profiles.size())].name,
        random_.Below(8),
        kStates[random_.Chance(0.8) ? random_.Below(2) : random_.Below(kStates.size())]);
  }
  return layout;
}

// Names pods of any node and namespace as holders of instances.
std::string StolenNode::DrawHolders() {
  const gpu::Model& model = DrawModel();
  const auto& profiles = model.profiles();
  const auto pods = world_.Pods();
  std::string holders;
  for (uint64_t i = random_.Below(4); i > 0 && !pods.empty(); --i) {
    holders += fmt::format("{}{}@{}={}", holders.empty() ? "" : ",",
                           profiles[random_.Below(profiles.size())].name, random_.Below(8),
                           pods[random_.Below(pods.size())]->Key());
  }
  return holders;
}

std::string StolenNode::DrawNumber() {
  static constexpr std::array<const char*, 8> kNumbers = {
      "0", "1", "7", "48", "9007199254740992", "99999999999999999999", "-1", "1e3"};
  return kNumbers[random_.Below(kNumbers.size())];
}

std::string StolenNode::DrawResult() {
  static constexpr std::array<const char*, 4> kOutcomes = {"applied", "partial", "failed", ""};
  if (random_.Chance(0.2)) return std::string(random_.Below(2000), '[');
  const JsonObject obstacle = {{"gpu", static_cast<int>(random_.Below(100)) - 1},
                               {"placement", DrawLayout()},
                               {"code", "InUse"},
                               {"message", std::string(random_.Below(3000), 'x')}};
  return WriteJson(JsonObject{{"plan", DrawNumber()},
                              {"outcome", kOutcomes[random_.Below(kOutcomes.size())]},
                              {"obstacles", JsonArray(random_.Below(40), obstacle)}});
}

// Amounts of resources and conditions.
JsonObject StolenNode::DrawStatus() {
  if (random_.Chance(0.3)) {
    const std::array<std::string_view, 3> types = {agent::kRebootRequired, agent::kGpusHealthy,
                                                   agent::kDeviceHandover};
    return {
        {"conditions", JsonArray{JsonObject{{"type", types[random_.Below(types.size())]},
                                            {"status", random_.Chance(0.5) ? "True" : "False"},
                                            {"reason", "Mine"},
                                            {"message", std::string(random_.Below(9000), 'm')},
                                            {"lastTransitionTime", FormatTime(world_.Now())}}}}};
  }
  const auto& profiles = DrawModel().profiles();
  const std::string resource = random_.Chance(0.2)
                                   ? "nvidia.com/gpu"
                                   : SliceResource(profiles[random_.Below(profiles.size())].name);
  const std::string amount = random_.Chance(0.5) ? "1000" : "0";
  return {{"capacity", JsonObject{{resource, amount}}},
          {"allocatable", JsonObject{{resource, amount}}}};
}

}  // namespace nos::sim
