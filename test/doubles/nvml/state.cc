#include "state.h"

#include <fmt/core.h>

#include <utility>

#include "base/uuid.h"

namespace nos::nvml_double {
namespace {

constexpr const char* kEffects[] = {"fail", "late", "lie", "exit"};

int64_t Number(const Json& json, std::string_view key, int64_t otherwise) {
  const Json* found = Find(json, key);
  if (found == nullptr) return otherwise;
  if (found->is_uint64()) return static_cast<int64_t>(found->get_uint64());
  return found->is_int64() ? found->get_int64() : otherwise;
}

std::optional<uint64_t> OptionalNumber(const Json& json, std::string_view key) {
  const Json* found = Find(json, key);
  if (found == nullptr) return std::nullopt;
  return static_cast<uint64_t>(Number(json, key, 0));
}

bool Flag(const Json& json, std::string_view key, bool otherwise) {
  const Json* found = Find(json, key);
  return found != nullptr && found->is_bool() ? found->get_bool() : otherwise;
}

std::string Text(const Json& json, std::string_view key, std::string otherwise) {
  const std::string_view found = FindString(json, key);
  return found.empty() ? std::move(otherwise) : std::string(found);
}

const JsonArray& List(const Json& json, std::string_view key) {
  static const JsonArray empty;
  const Json* found = Find(json, key);
  return found != nullptr && found->is_array() ? found->get_array() : empty;
}

Values ReadValues(const Json& json) {
  Values values;
  const Json* found = Find(json, "readings");
  if (found == nullptr || !found->is_object()) return values;
  for (const auto& entry : found->get_object()) {
    values[std::string(entry.key())] = Number(*found, entry.key(), 0);
  }
  return values;
}

Json WriteValues(const Values& values) {
  JsonObject json;
  for (const auto& [name, value] : values) json[name] = value;
  return json;
}

std::vector<Process> ReadProcesses(const Json& json) {
  std::vector<Process> processes;
  for (const Json& entry : List(json, "processes")) {
    Process process{static_cast<unsigned>(Number(entry, "pid", 0)),
                    Text(entry, "name", ""),
                    {},
                    static_cast<unsigned>(Number(entry, "instance", 0xFFFFFFFF))};
    if (Find(entry, "memoryMiB") != nullptr) process.memory_mib = Number(entry, "memoryMiB", 0);
    processes.push_back(std::move(process));
  }
  return processes;
}

Json WriteProcesses(const std::vector<Process>& processes) {
  JsonArray json;
  for (const Process& process : processes) {
    JsonObject entry{{"pid", process.pid}, {"name", process.name}, {"instance", process.instance}};
    if (process.memory_mib) entry["memoryMiB"] = *process.memory_mib;
    json.push_back(std::move(entry));
  }
  return json;
}

Hang ReadHang(const Json& json) {
  Hang hang;
  for (const Json& call : List(json, "hangs")) {
    if (call.is_string()) hang.calls.emplace_back(std::string_view(call.get_string()));
  }
  hang.hanging = static_cast<int>(Number(json, "hanging", 0));
  return hang;
}

void WriteHang(const Hang& hang, JsonObject& json) {
  JsonArray calls;
  for (const std::string& call : hang.calls) calls.push_back(Json(call));
  json["hangs"] = std::move(calls);
  json["hanging"] = hang.hanging;
}

Result<Instance> ReadInstance(const Json& json, const gpu::Model& model) {
  Instance instance;
  instance.id = static_cast<unsigned>(Number(json, "id", 0));
  NOS_ASSIGN(instance.placement,
             model.ParsePlacement(
                 fmt::format("{}@{}", FindString(json, "profile"), Number(json, "start", 0))));
  for (const Json& entry : List(json, "computeInstances")) {
    instance.compute.push_back({static_cast<unsigned>(Number(entry, "id", 0)),
                                static_cast<unsigned>(Number(entry, "profile", 0)),
                                static_cast<unsigned>(Number(entry, "slices", 1)),
                                Flag(entry, "inUse", false)});
  }
  instance.readings = ReadValues(json);
  return instance;
}

Result<Gpu> ReadGpu(const Json& json, const std::string& node, size_t index) {
  Gpu gpu;
  const std::string name = Text(json, "model", "");
  gpu.model = name.empty() ? nullptr : gpu::Catalogue::Builtin().FindByName(name);
  if (!name.empty() && gpu.model == nullptr) return Invalid("unknown model " + name);
  const bool known = gpu.model != nullptr;
  const bool has_id = known && !gpu.model->pci_ids().empty();
  gpu.product = Text(json, "product", known ? "NVIDIA " + name : "NVIDIA L4");
  gpu.uuid = Text(json, "uuid", "GPU-" + NameBasedUuid(fmt::format("{}/{}", node, index)));
  gpu.pci_device_id = static_cast<unsigned>(
      Number(json, "pciDeviceId", has_id ? gpu.model->pci_ids().front() : 0x27B810DE));
  gpu.memory_mib = Number(json, "memoryMiB", known ? gpu.model->memory_gib() * 1024 : 23034);
  gpu.mig = Flag(json, "mig", true);
  gpu.mig_pending = Flag(json, "migPending", gpu.mig);
  gpu.compute_mode = static_cast<unsigned>(Number(json, "computeMode", 0));
  gpu.lost = Flag(json, "lost", false);
  gpu.in_use = Flag(json, "inUse", false);
  gpu.no_reset = Text(json, "noReset", "");
  gpu.parent_handles = Flag(json, "parentHandles", false);
  if (const Json* renames = Find(json, "renames"); renames != nullptr && renames->is_object()) {
    for (const auto& entry : renames->get_object()) {
      gpu.renames[std::string(entry.key())] = FindString(*renames, entry.key());
    }
  }
  for (const Json& entry : List(json, "instances")) {
    if (!known) return Invalid("a GPU without model has instances");
    NOS_ASSIGN(Instance instance, ReadInstance(entry, *gpu.model));
    gpu.instances.push_back(std::move(instance));
  }
  gpu.readings = ReadValues(json);
  gpu.processes = ReadProcesses(json);
  gpu.hang = ReadHang(json);
  return gpu;
}

Result<Fault> ReadFault(const Json& json) {
  Fault fault;
  fault.call = Text(json, "call", "");
  if (Find(json, "gpu") != nullptr) fault.gpu = static_cast<int>(Number(json, "gpu", 0));
  const std::string effect = Text(json, "effect", "fail");
  int known = 0;
  while (known < 4 && effect != kEffects[known]) ++known;
  if (known == 4) return Invalid("unknown effect " + effect);
  fault.effect = static_cast<Fault::Effect>(known);
  fault.error = static_cast<unsigned>(Number(json, "error", 999));
  fault.after = static_cast<int>(Number(json, "after", 0));
  fault.times = static_cast<int>(Number(json, "times", 1));
  fault.count = OptionalNumber(json, "count");
  fault.start = OptionalNumber(json, "start");
  fault.size = OptionalNumber(json, "size");
  fault.unterminated = Flag(json, "unterminated", false);
  return fault;
}

Json WriteInstance(const Instance& instance, const gpu::Model& model) {
  JsonArray compute;
  for (const ComputeInstance& one : instance.compute) {
    compute.push_back(JsonObject{
        {"id", one.id}, {"profile", one.profile}, {"slices", one.slices}, {"inUse", one.in_use}});
  }
  return JsonObject{{"id", instance.id},
                    {"profile", model.profile(instance.placement.profile).name},
                    {"start", instance.placement.start},
                    {"computeInstances", std::move(compute)},
                    {"readings", WriteValues(instance.readings)}};
}

Json WriteGpu(const Gpu& gpu) {
  JsonArray instances;
  JsonObject renames;
  for (const auto& [name, renamed] : gpu.renames) renames[name] = renamed;
  for (const Instance& instance : gpu.instances) {
    instances.push_back(WriteInstance(instance, *gpu.model));
  }
  JsonObject json{{"model", gpu.model == nullptr ? "" : gpu.model->name()},
                  {"product", gpu.product},
                  {"uuid", gpu.uuid},
                  {"pciDeviceId", gpu.pci_device_id},
                  {"memoryMiB", gpu.memory_mib},
                  {"mig", gpu.mig},
                  {"migPending", gpu.mig_pending},
                  {"computeMode", gpu.compute_mode},
                  {"lost", gpu.lost},
                  {"inUse", gpu.in_use},
                  {"noReset", gpu.no_reset},
                  {"parentHandles", gpu.parent_handles},
                  {"renames", std::move(renames)},
                  {"instances", std::move(instances)},
                  {"readings", WriteValues(gpu.readings)},
                  {"processes", WriteProcesses(gpu.processes)}};
  WriteHang(gpu.hang, json);
  return json;
}

Json WriteFault(const Fault& fault) {
  JsonObject json{{"call", fault.call},   {"effect", kEffects[static_cast<int>(fault.effect)]},
                  {"error", fault.error}, {"after", fault.after},
                  {"times", fault.times}, {"unterminated", fault.unterminated}};
  if (fault.gpu) json["gpu"] = *fault.gpu;
  if (fault.count) json["count"] = *fault.count;
  if (fault.start) json["start"] = *fault.start;
  if (fault.size) json["size"] = *fault.size;
  return json;
}

}  // namespace

Result<State> ReadState(const Json& json) {
  State state;
  state.node = Text(json, "node", "node");
  state.driver = Text(json, "driver", "580.95.05");
  state.root = Flag(json, "root", true);
  if (const Json* latency = Find(json, "latencyMs"); latency != nullptr && latency->is_object()) {
    for (const auto& entry : latency->get_object()) {
      state.latency_ms[std::string(entry.key())] = Number(*latency, entry.key(), 0);
    }
  }
  for (const Json& entry : List(json, "gpus")) {
    NOS_ASSIGN(Gpu gpu, ReadGpu(entry, state.node, state.gpus.size()));
    state.gpus.push_back(std::move(gpu));
  }
  for (const Json& entry : List(json, "faults")) {
    NOS_ASSIGN(Fault fault, ReadFault(entry));
    state.faults.push_back(std::move(fault));
  }
  for (const Json& entry : List(json, "events")) {
    state.events.push_back({static_cast<int>(Number(entry, "gpu", 0)),
                            static_cast<uint64_t>(Number(entry, "type", 8)),
                            static_cast<uint64_t>(Number(entry, "data", 0)),
                            static_cast<unsigned>(Number(entry, "instance", 0xFFFFFFFF)),
                            static_cast<unsigned>(Number(entry, "compute", 0xFFFFFFFF))});
  }
  state.hang = ReadHang(json);
  return state;
}

Json WriteState(const State& state) {
  JsonObject latency;
  for (const auto& [call, milliseconds] : state.latency_ms) latency[call] = milliseconds;
  JsonArray gpus, faults, events;
  for (const Gpu& gpu : state.gpus) gpus.push_back(WriteGpu(gpu));
  for (const Fault& fault : state.faults) faults.push_back(WriteFault(fault));
  for (const Event& event : state.events) {
    events.push_back(JsonObject{{"gpu", event.gpu},
                                {"type", event.type},
                                {"data", event.data},
                                {"instance", event.instance},
                                {"compute", event.compute}});
  }
  JsonObject json{{"node", state.node},         {"driver", state.driver},
                  {"root", state.root},         {"latencyMs", std::move(latency)},
                  {"gpus", std::move(gpus)},    {"faults", std::move(faults)},
                  {"events", std::move(events)}};
  WriteHang(state.hang, json);
  return json;
}

}  // namespace nos::nvml_double
