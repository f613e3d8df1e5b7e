#include "sim/world/run/chaos_claims.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "sim/world/node/claim_invariants.h"
#include "sim/world/node/claim_keeper.h"
#include "sim/world/node/device_slices.h"

namespace nos::sim {
namespace {

using std::chrono::seconds;

constexpr char kNamespace[] = "default";
constexpr char kNicDriver[] = "nic.example.com";
constexpr char kGpuClass[] = "gpu.nvidia.com", kMigClass[] = "mig.nvidia.com";
constexpr int64_t kNicGib = 10;  // capacity of a shared device
// The number of the claim's plan.
constexpr char kPlan[] = "sim.nos.nebuly.com/plan";
constexpr size_t kTemplates = 8, kNamedClaims = 4;
constexpr Duration kTick = seconds(2);

const kube::Resource kSlices{"resource.k8s.io", "v1", "resourceslices", "ResourceSlice", false};
const kube::Resource kClasses{"resource.k8s.io", "v1", "deviceclasses", "DeviceClass", false};
const kube::Resource kTaintRules{"resource.k8s.io", "v1", "devicetaintrules", "DeviceTaintRule",
                                 false};

const JsonArray& ListOf(const Json* list) {
  static const JsonArray kNone;
  return list != nullptr && list->is_array() ? list->get_array() : kNone;
}

bool IsAllocated(const Json& claim) {
  const Json* allocation = Find(claim, "status", "allocation");
  return allocation != nullptr && !allocation->is_null();
}

std::string KeyOf(const Json& object) {
  return kube::KeyOf(FindString(object, "metadata", "namespace"),
                     FindString(object, "metadata", "name"));
}

Json Selector(std::string_view expression) {
  return JsonObject{{"cel", JsonObject{{"expression", expression}}}};
}

// Expressions that fail for every device, that cost too much, or that never match.
constexpr std::array<std::string_view, 4> kHostileExpressions = {
    "device.attributes['gpu.nvidia.com'].absent == 'x'",
    "[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, "
    "[1,2,3,4,5,6,7,8,9,10].all(c, [1,2,3,4,5,6,7,8,9,10].all(d, "
    "[1,2,3,4,5,6,7,8,9,10].all(e, [1,2,3,4,5,6,7,8,9,10].all(f, a + b + c + d + e + f > 0))))))",
    "device.driver.matches('(a+)+(b+)+(c+)+$')",
    "device.driver == ",
};

}  // namespace

ChaosClaims::ChaosClaims(World& world, uint64_t seed)
    : world_(world),
      client_(world.api()),
      random_(seed),
      plans_random_(random_.Fork()),
      conditions_(random_.Chance(0.4)),
      nics_(random_.Chance(0.6)),
      hostile_(random_.Chance(0.6)) {}

void ChaosClaims::DrawNode(NodeSpec& node) {
  const bool serves = nodes_.empty() || random_.Chance(0.5);
  if (!serves) return;
  std::vector<const gpu::Model*> known;
  for (const auto& model : world_.catalogue().models()) {
    if (CanAnnounce(*model)) known.push_back(&*model);
  }
  const gpu::Model* model = known[random_.Below(known.size())];
  for (GpuSpec& gpu : node.gpus) gpu.model = model->name();
  node.dra = true;
  node.managed = node.mps = node.hybrid = false;
  nodes_.push_back(node.name);
  models_.push_back(model);
}

// --- Claims

AskedDevices ChaosClaims::DrawDevices() {
  Random& random = plans_random_;
  AskedDevices asked;
  const double kind = random.Uniform();
  if (kind < 0.2) {
    asked.device_class = kGpuClass;
  } else if (nics_ && kind < 0.35) {
    asked.device_class = kNicDriver;
    asked.gib = 1 + static_cast<int64_t>(random.Below(8));
  } else {
    asked.device_class = kMigClass;
    const gpu::Model& model = *models_[random.Below(models_.size())];
    if (random.Chance(0.9)) {
      asked.profile = model.profiles()[random.Below(model.profiles().size())].name;
    }
  }
  if (random.Chance(0.15)) asked.count = 2;
  asked.tolerates = random.Chance(0.3);
  return asked;
}

AskedClaim ChaosClaims::DrawPlan() {
  Random& random = plans_random_;
  if (hostile_ && random.Chance(0.15)) return DrawHostilePlan();
  AskedClaim plan;
  const double size = random.Uniform();
  const int requests = size < 0.65 ? 1 : size < 0.9 ? 2 : 3;
  for (int i = 0; i < requests; ++i) {
    std::vector<AskedDevices>& alternatives = plan.requests.emplace_back();
    alternatives.push_back(DrawDevices());
    if (random.Chance(0.2)) alternatives.push_back(DrawDevices());
  }
  const bool instances = std::ranges::all_of(plan.requests, [](const auto& alternatives) {
    return std::ranges::all_of(
        alternatives, [](const AskedDevices& asked) { return asked.device_class == kMigClass; });
  });
  plan.same_gpu = instances && random.Chance(0.4);
  return plan;
}

// Huge counts, many requests with many alternatives that nothing serves together, and expressions
// that fail or cost too much (ClaimSpec adds them).
AskedClaim ChaosClaims::DrawHostilePlan() {
  Random& random = plans_random_;
  AskedClaim plan;
  plan.hostile = true;
  const uint64_t kind = random.Below(3);
  if (kind == 0) {
    plan.requests = {{DrawDevices()}};
    plan.requests[0][0].count = random.Chance(0.5) ? 1000 : 32;
  } else if (kind == 1) {
    for (size_t i = 0; i < 8 + random.Below(24); ++i) {
      std::vector<AskedDevices>& alternatives = plan.requests.emplace_back();
      for (uint64_t k = 1 + random.Below(6); k > 0; --k) {
        alternatives.push_back({.device_class = kMigClass, .profile = {}});
      }
    }
    plan.same_gpu = random.Chance(0.5);
  } else {
    plan.requests = {{DrawDevices()}};
    plan.requests[0][0].gib = -1 - static_cast<int64_t>(random.Below(kHostileExpressions.size()));
  }
  return plan;
}

Json ChaosClaims::DevicesJson(const AskedDevices& asked) {
  JsonObject request = {{"deviceClassName", asked.device_class}};
  if (asked.count != 1) request["count"] = asked.count;
  if (asked.tolerates) request["tolerations"] = JsonArray{JsonObject{{"operator", "Exists"}}};
  JsonArray selectors;
  if (!asked.profile.empty()) {
    selectors.push_back(Selector(
        fmt::format("device.attributes['gpu.nvidia.com'].profile == '{}'", asked.profile)));
  }
  if (asked.gib < 0) {
    selectors.push_back(Selector(kHostileExpressions[static_cast<size_t>(-asked.gib - 1)]));
  }
  if (!selectors.empty()) request["selectors"] = std::move(selectors);
  if (asked.gib > 0) {
    const JsonObject amounts = {{"bandwidth", fmt::format("{}Gi", asked.gib)}};
    request["capacity"] = JsonObject{{"requests", amounts}};
  }
  return request;
}

Json ChaosClaims::ClaimSpec(const AskedClaim& plan) {
  JsonArray requests;
  for (size_t i = 0; i < plan.requests.size(); ++i) {
    JsonObject request = {{"name", fmt::format("r{}", i)}};
    const auto& alternatives = plan.requests[i];
    if (alternatives.size() == 1) {
      request["exactly"] = DevicesJson(alternatives[0]);
    } else {
      JsonArray list;
      for (size_t k = 0; k < alternatives.size(); ++k) {
        Json one = DevicesJson(alternatives[k]);
        one.get_object()["name"] = fmt::format("a{}", k);
        list.push_back(std::move(one));
      }
      request["firstAvailable"] = std::move(list);
    }
    requests.push_back(std::move(request));
  }
  JsonObject devices = {{"requests", std::move(requests)}};
  if (plan.same_gpu) {
    devices["constraints"] = JsonArray{JsonObject{{"matchAttribute", "gpu.nvidia.com/parentUUID"}}};
  }
  return JsonObject{{"devices", std::move(devices)}};
}

Status ChaosClaims::AddTemplates() {
  for (size_t i = 0; i < kTemplates; ++i) {
    plans_.push_back(DrawPlan());
    templates_.push_back(fmt::format("t{}", i + 1));
    const JsonObject annotations = {{kPlan, fmt::to_string(plans_.size() - 1)}};
    const Json object =
        JsonObject{{"metadata", JsonObject{{"name", templates_.back()}, {"namespace", kNamespace}}},
                   {"spec", JsonObject{{"metadata", JsonObject{{"annotations", annotations}}},
                                       {"spec", ClaimSpec(plans_.back())}}}};
    NOS_RETURN_IF_ERROR(client_.Create(kClaimTemplates, kNamespace, object).status());
  }
  return Status::Ok();
}

void ChaosClaims::AddNamedClaims() {
  for (size_t i = 0; i < kNamedClaims; ++i) {
    plans_.push_back(DrawPlan());
    named_.push_back({fmt::format("c{}", i + 1), plans_.size() - 1, false});
    world_.At(Later(seconds(60)), [this, i] { named_[i].wanted = true; });
    // Deleted, and created again under the same name with other requests.
    if (!random_.Chance(0.5)) continue;
    world_.At(Sometime(), [this, i] {
      const Status gone = client_.Delete(kResourceClaims, kNamespace, named_[i].name);
      world_.log().Note("user",
                        fmt::format("deletes claim {}: {}", named_[i].name, gone.ToString()));
      plans_.push_back(DrawPlan());
      named_[i].plan = plans_.size() - 1;
    });
  }
}

void ChaosClaims::DrawClaims(PodSpec& pod) {
  if (!random_.Chance(0.65)) return;
  pod.ns = kNamespace;
  pod.containers = {{}};
  pod.init.clear();
  const size_t count = random_.Chance(0.2) ? 2 : 1;
  for (size_t i = 0; i < count; ++i) {
    if (random_.Chance(0.35)) {
      pod.claims.push_back({fmt::format("c{}", 1 + random_.Below(kNamedClaims)), ""});
    } else {
      pod.claims.push_back({"", templates_[random_.Below(templates_.size())]});
    }
  }
}

void ChaosClaims::DrawClaims(GangSpec& gang) {
  if (!random_.Chance(0.5)) return;
  const ClaimRefSpec claim{"", templates_[random_.Below(templates_.size())]};
  for (PodSpec& pod : gang.pods) {
    pod.containers = {{}};
    pod.init.clear();
    pod.claims = {claim};
  }
}

// --- Faults

Status ChaosClaims::Add(Duration faults_last) {
  until_ = world_.Now() + faults_last;
  const Json nic_class =
      JsonObject{{"metadata", JsonObject{{"name", kNicDriver}}},
                 {"spec", JsonObject{{"selectors", JsonArray{Selector(fmt::format(
                                                       "device.driver == '{}'", kNicDriver))}}}}};
  NOS_RETURN_IF_ERROR(client_.Create(kClasses, "", nic_class).status());
  if (conditions_) {
    for (const std::string& node : nodes_) {
      if (!random_.Chance(0.6)) continue;
      Machine* machine = world_.FindMachine(node);
      if (machine == nullptr || machine->driver() == nullptr) continue;
      machine->driver()->Publish({.hidden_gpus = {}, .tainted_gpus = {}, .conditions = true});
    }
  }
  NOS_RETURN_IF_ERROR(AddTemplates());
  AddNamedClaims();
  ScheduleFaults();
  Tick();
  return Status::Ok();
}

Time ChaosClaims::Sometime() {
  return world_.Now() + FromSeconds(random_.Uniform() * ToSeconds(until_ - world_.Now()));
}

// Before the end of the faults.
Time ChaosClaims::Later(Duration longest) {
  return std::min(until_, world_.Now() + FromSeconds(random_.Uniform() * ToSeconds(longest)));
}

ClaimDriver* ChaosClaims::AnyDriver(std::string* node) {
  const std::string& name = nodes_[random_.Below(nodes_.size())];
  Machine* machine = world_.FindMachine(name);
  if (node != nullptr) *node = name;
  return machine == nullptr ? nullptr : machine->driver();
}

void ChaosClaims::ScheduleFaults() {
  const bool drivers = random_.Chance(0.7), taints = random_.Chance(0.6),
             rules = random_.Chance(0.6);
  for (uint64_t i = drivers ? 1 + random_.Below(6) : 0; i > 0; --i) {
    world_.At(Sometime(), [this] { ScheduleDriverFault(); });
  }
  for (uint64_t i = taints ? 1 + random_.Below(4) : 0; i > 0; --i) {
    world_.At(Sometime(), [this] { DrawTaints(); });
  }
  for (uint64_t i = rules ? 1 + random_.Below(4) : 0; i > 0; --i) {
    world_.At(Sometime(), [this] { ChangeTaintRules(); });
  }
  // The driver has everything again after the faults.
  world_.At(until_, [this] {
    for (const std::string& node : nodes_) {
      Machine* machine = world_.FindMachine(node);
      if (machine == nullptr || machine->driver() == nullptr) continue;
      ClaimDriver& driver = *machine->driver();
      if (driver.away()) driver.Return();
      ClaimDriver::Publication whole = driver.publication();
      whole.defect = ClaimDriver::Publication::Defect::kNone;
      whole.hidden_gpus.clear();
      whole.between = {};
      driver.Publish(std::move(whole));
    }
  });
}

// The driver vanishes, loses devices, publishes a broken pool, or publishes slowly.
void ChaosClaims::ScheduleDriverFault() {
  std::string node;
  ClaimDriver* driver = AnyDriver(&node);
  if (driver == nullptr || driver->away()) return;
  const auto repair = [this, node](const std::function<void(ClaimDriver&)>& change) {
    world_.At(Later(seconds(90)), [this, node, change] {
      Machine* machine = world_.FindMachine(node);
      if (machine != nullptr && machine->driver() != nullptr) change(*machine->driver());
    });
  };
  ClaimDriver::Publication now = driver->publication();
  using Defect = ClaimDriver::Publication::Defect;
  constexpr std::array<Defect, 3> kDefects = {Defect::kMissingSlice, Defect::kDuplicateDevice,
                                              Defect::kNoCounters};
  switch (random_.Below(4)) {
    case 0:
      driver->Vanish();
      return repair([](ClaimDriver& back) {
        if (back.away()) back.Return();
      });
    case 1: {
      const int gpu = static_cast<int>(random_.Below(world_.FindMachine(node)->gpu_count()));
      world_.log().Note(driver->name(), fmt::format("fault: no devices of GPU {}", gpu));
      now.hidden_gpus.insert(gpu);
      driver->Publish(now);
      return repair([gpu](ClaimDriver& back) {
        ClaimDriver::Publication with = back.publication();
        with.hidden_gpus.erase(gpu);
        back.Publish(with);
      });
    }
    case 2:
      now.defect = kDefects[random_.Below(kDefects.size())];
      world_.log().Note(driver->name(),
                        fmt::format("fault: broken pool ({})", static_cast<int>(now.defect)));
      driver->Publish(now);
      return repair([](ClaimDriver& back) {
        ClaimDriver::Publication with = back.publication();
        with.defect = Defect::kNone;
        back.Publish(with);
      });
    default:
      now.between = seconds(1 + random_.Below(15));
      world_.log().Note(driver->name(), "fault: publishes slowly");
      driver->Publish(now);
  }
}

// Taints the devices of a GPU, or removes the taint. It may stay after the faults.
void ChaosClaims::DrawTaints() {
  std::string node;
  ClaimDriver* driver = AnyDriver(&node);
  if (driver == nullptr || driver->away()) return;
  const int gpu = static_cast<int>(random_.Below(world_.FindMachine(node)->gpu_count()));
  ClaimDriver::Publication with = driver->publication();
  if (with.tainted_gpus.erase(gpu) == 0) with.tainted_gpus.insert(gpu);
  world_.log().Note(driver->name(), fmt::format("changes the taint of GPU {}", gpu));
  driver->Publish(with);
}

void ChaosClaims::ChangeTaintRules() {
  const std::string name = fmt::format("rule-{}", 1 + random_.Below(2));
  const Status gone = client_.Delete(kTaintRules, "", name);
  world_.log().Note("user", fmt::format("changes taint rule {}", name));
  if (gone.ok()) return;
  JsonObject selector = {{"pool", nodes_[random_.Below(nodes_.size())]}};
  if (random_.Chance(0.5)) selector["driver"] = kGpuDriver;
  if (random_.Chance(0.3)) selector["device"] = "gpu-0";
  const Json rule = JsonObject{
      {"metadata", JsonObject{{"name", name}}},
      {"spec", JsonObject{{"deviceSelector", std::move(selector)},
                          {"taint", JsonObject{{"key", kFaultTaint}, {"effect", "NoSchedule"}}}}}};
  (void)client_.Create(kTaintRules, "", rule);
}

// --- What other components do

void ChaosClaims::Tick() {
  if (nics_) AnnounceNics();
  ReplaceClaims();
  for (const Json& claim : List(kResourceClaims)) {
    if (!IsAllocated(claim)) continue;
    allocated_.insert(std::string(FindString(claim, "metadata", "uid")));
    SetConditions(claim);
  }
  world_.At(world_.Now() + kTick, [this] { Tick(); });
}

// A driver of devices that several claims share. The slice of a node that was deleted is gone.
void ChaosClaims::AnnounceNics() {
  for (const std::string& node : nodes_) {
    const auto object = client_.Get(kube::kNodes, "", node);
    if (!object.ok()) continue;
    JsonArray devices;
    for (int i = 0; i < 2; ++i) {
      const JsonObject bandwidth = {{"value", fmt::format("{}Gi", kNicGib)}};
      devices.push_back(JsonObject{{"name", fmt::format("nic-{}", i)},
                                   {"allowMultipleAllocations", true},
                                   {"capacity", JsonObject{{"bandwidth", bandwidth}}}});
    }
    const Json slice = JsonObject{
        {"metadata", JsonObject{{"name", fmt::format("nic-{}", node)}}},
        {"spec",
         JsonObject{
             {"driver", kNicDriver},
             {"nodeName", node},
             {"pool", JsonObject{{"name", node}, {"generation", 1}, {"resourceSliceCount", 1}}},
             {"devices", std::move(devices)}}}};
    (void)client_.Create(kSlices, "", slice);  // it may be there
  }
}

void ChaosClaims::ReplaceClaims() {
  for (const NamedClaim& named : named_) {
    if (!named.wanted) continue;
    const JsonObject annotations = {{kPlan, fmt::to_string(named.plan)}};
    const Json object = JsonObject{
        {"metadata",
         JsonObject{{"name", named.name}, {"namespace", kNamespace}, {"annotations", annotations}}},
        {"spec", ClaimSpec(plans_[named.plan])}};
    if (client_.Create(kResourceClaims, kNamespace, object).ok()) {
      world_.log().Note("user", fmt::format("creates claim {}", named.name));
    }
  }
}

// The controller of devices with binding conditions: they become ready after a while, and some fail
// while there are faults.
void ChaosClaims::SetConditions(const Json& claim) {
  JsonArray devices;
  bool changes = false;
  const JsonArray& known = ListOf(Find(claim, "status", "devices"));
  for (const Json& result : ListOf(Find(claim, "status", "allocation", "devices", "results"))) {
    if (ListOf(Find(result, "bindingConditions")).empty()) continue;
    const std::string_view device = FindString(result, "device");
    const bool set = std::ranges::any_of(
        known, [&](const Json& status) { return FindString(status, "device") == device; });
    if (set) continue;
    const std::string key =
        fmt::format("{} {} {}", FindString(claim, "metadata", "uid"), device,
                    FindString(claim, "status", "allocation", "allocationTimestamp"));
    auto at = conditions_at_.find(key);
    if (at == conditions_at_.end()) {
      const bool ready = world_.Now() >= until_ || random_.Chance(0.85);
      const Time when = world_.Now() + seconds(random_.Below(20));
      at = conditions_at_.emplace(key, std::pair(when, ready)).first;
    }
    if (world_.Now() < at->second.first) continue;
    changes = true;
    const JsonObject condition = {{"type", at->second.second ? kReadyCondition : kFailedCondition},
                                  {"status", "True"},
                                  {"reason", "Simulated"},
                                  {"message", ""},
                                  {"lastTransitionTime", FormatTime(world_.Now())}};
    devices.push_back(JsonObject{{"driver", FindString(result, "driver")},
                                 {"pool", FindString(result, "pool")},
                                 {"device", device},
                                 {"conditions", JsonArray{condition}}});
  }
  if (!changes) return;
  for (const Json& status : known) devices.push_back(status);
  Json changed = claim;
  MakeObject(changed, "status")["devices"] = std::move(devices);
  const Status written =
      client_.Update(kResourceClaims, FindString(claim, "metadata", "namespace"), changed, "status")
          .status();
  world_.log().Note("device controller",
                    fmt::format("sets conditions of claim {}: {}",
                                FindString(claim, "metadata", "name"), written.ToString()));
}

// --- Checks

std::vector<Json> ChaosClaims::List(const kube::Resource& kind) {
  auto list = client_.List(kind, "", {});
  return list.ok() ? std::move(list->items) : std::vector<Json>();
}

void ChaosClaims::Refresh() {
  slices_ = List(kSlices);
  rules_ = List(kTaintRules);
  claims_ = List(kResourceClaims);
}

bool ChaosClaims::CouldServe(const std::vector<const cluster::Pod*>& pods, const std::string& node,
                             bool empty) const {
  std::map<std::string, const AskedClaim*> open;
  for (const cluster::Pod* pod : pods) {
    for (const cluster::PodClaim& reference : pod->claims) {
      if (reference.unneeded) continue;
      const std::string key = kube::KeyOf(pod->meta.ns, reference.claim);
      const auto claim =
          std::ranges::find_if(claims_, [&](const Json& each) { return KeyOf(each) == key; });
      const bool there =
          claim != claims_.end() && Find(*claim, "metadata", "deletionTimestamp") == nullptr;
      if (!there) return false;
      if (IsAllocated(*claim)) {
        const auto& results = ListOf(Find(*claim, "status", "allocation", "devices", "results"));
        const bool here = std::ranges::all_of(
            results, [&](const Json& result) { return FindString(result, "pool") == node; });
        if (!here) return false;
        continue;
      }
      const auto plan = ParseInt(FindString(*claim, "metadata", "annotations", kPlan));
      if (!plan) return false;
      open[key] = &plans_[static_cast<size_t>(*plan)];
    }
  }
  std::vector<const AskedClaim*> asked;
  for (const auto& [key, plan] : open) asked.push_back(plan);
  if (asked.empty()) return true;
  return NodeDevices(slices_, rules_, empty ? std::vector<Json>() : claims_, node)
      .CouldServe(asked);
}

std::vector<std::string> ChaosClaims::Leftovers() {
  return CheckUsers(List(kResourceClaims), world_.Pods());
}

std::vector<std::string> ChaosClaims::Describe() {
  Refresh();
  std::vector<std::string> lines;
  for (const Json& claim : claims_) {
    lines.push_back(
        fmt::format("claim {} spec {} status {}", KeyOf(claim), WriteJson(*Find(claim, "spec")),
                    Find(claim, "status") == nullptr ? "-" : WriteJson(*Find(claim, "status"))));
  }
  for (const Json& slice : slices_) {
    std::vector<std::string> devices;
    for (const Json& device : ListOf(Find(slice, "spec", "devices"))) {
      devices.emplace_back(FindString(device, "name"));
    }
    lines.push_back(fmt::format("slice {} {}: {}", FindString(slice, "metadata", "name"),
                                WriteJson(*Find(slice, "spec", "pool")), Join(devices, " ")));
  }
  for (const Json& rule : rules_) {
    lines.push_back(fmt::format("taint rule {}", WriteJson(*Find(rule, "spec"))));
  }
  return lines;
}

}  // namespace nos::sim
