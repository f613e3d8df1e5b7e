#include "telemetryreporter/sampler.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "base/millis.h"
#include "base/text.h"
#include "device/mig_parts.h"
#include "telemetry/envelope_writer.h"

namespace nos::telemetry {
namespace {

constexpr size_t kMaxReason = 400;  // characters of a GPU's problem

JsonObject MetricsJson(const device::Readings& readings) {
  JsonObject json;
  for (const auto& [name, value] : readings.metrics) {
    // Four decimals exceed the precision of every metric.
    const double rounded = std::round(value * 1e4) / 1e4;
    if (rounded == std::floor(rounded)) {
      json[name] = static_cast<int64_t>(rounded);
    } else {
      json[name] = rounded;
    }
  }
  return json;
}

JsonObject UnmeasuredJson(const device::Readings& readings) {
  JsonObject json;
  for (const auto& [name, why] : readings.unmeasured) json[name] = why;
  return json;
}

// The pod is the holder of the device that the process uses.
Json ProcessJson(const SampledGpu& gpu, const device::GpuProcess& process) {
  JsonObject json{{"pid", process.pid}, {"name", process.name}};
  if (process.memory_mib) json["memory"] = *process.memory_mib;
  const Holder* holder = process.instance ? nullptr : SoleHolder(gpu.holders);
  for (const SampledInstance& sampled : gpu.instances) {
    if (sampled.instance.id != process.instance) continue;
    json["instance"] = sampled.instance.uuid;
    holder = SoleHolder(sampled.holders);
  }
  if (holder != nullptr) {
    json["pod"] = JsonObject{
        {"namespace", holder->ns}, {"name", holder->pod}, {"container", holder->container}};
  }
  return json;
}

JsonObject GpuFields(const SampledGpu& gpu) {
  JsonArray processes;
  for (const device::GpuProcess& process : gpu.readings.processes) {
    processes.push_back(ProcessJson(gpu, process));
  }
  return {{"gpu", gpu.info.uuid},
          {"index", gpu.info.index},
          {"metrics", MetricsJson(gpu.readings)},
          {"unmeasured", UnmeasuredJson(gpu.readings)},
          {"processes", std::move(processes)}};
}

JsonObject InstanceFields(const SampledGpu& gpu, const SampledInstance& sampled) {
  return {{"gpu", gpu.info.uuid},
          {"instance", sampled.instance.uuid},
          {"metrics", MetricsJson(sampled.readings)},
          {"unmeasured", UnmeasuredJson(sampled.readings)}};
}

// A GPU that has never answered has no UUID; "NODE/INDEX" identifies it.
std::string NameOf(const NodeSample& sample, int index) {
  for (const SampledGpu& gpu : sample.gpus) {
    if (gpu.info.index == index && !gpu.info.uuid.empty()) return gpu.info.uuid;
  }
  return fmt::format("{}/{}", sample.node, index);
}

JsonArray InstancesJson(const SampledGpu& gpu) {
  JsonArray instances;
  for (const SampledInstance& sampled : gpu.instances) {
    const device::GpuInstance& instance = sampled.instance;
    instances.push_back(JsonObject{{"id", device::DriverIdOf(instance.id)},
                                   {"instance", instance.uuid},
                                   {"profile", instance.profile},
                                   {"start", instance.start},
                                   {"size", instance.size},
                                   {"holders", HoldersJson(sampled.holders)}});
  }
  return instances;
}

std::string Record(const char* kind, Time at, const JsonObject& fields) {
  JsonObject record{{"kind", kind}, {"at", ToMillis(at)}};
  for (const auto& field : fields) record[field.key()] = field.value();
  return WriteJson(record);
}

std::string XidRecord(const NodeSample& sample, const XidEvent& event) {
  return Record(
      "xid", event.at,
      {{"gpu", NameOf(sample, event.gpu)}, {"xid", event.xid}, {"message", event.message}});
}

// Sharing mode of the node's GPUs.
std::string_view ModeOf(const NodeSample& sample) {
  const auto any = [&](auto is) { return std::ranges::any_of(sample.gpus, is); };
  if (any([](const SampledGpu& gpu) { return gpu.info.gives_whole; })) return "hybrid";
  return any([](const SampledGpu& gpu) { return gpu.info.share_gib > 0; }) ? "mps" : "mig";
}

}  // namespace

JsonObject Sampler::LayoutOf(const NodeSample& sample, const SampledGpu& gpu) {
  if (gpu.instances_status.ok()) {
    instances_[gpu.info.index] = InstancesJson(gpu);
    sharing_modes_[gpu.info.index] = {gpu.sharing_mode, gpu.switches};
  }
  const auto& [mode, switches] = sharing_modes_[gpu.info.index];
  return {{"index", gpu.info.index},
          {"gpu", NameOf(sample, gpu.info.index)},
          {"product", gpu.info.product},
          {"memory", gpu.info.memory_mib},
          {"slots", gpu.slots},
          {"mig", gpu.info.mig_enabled},
          {"health", Shortened(gpu.health, kMaxReason)},
          {"instances", instances_[gpu.info.index]},
          {"holders", HoldersJson(gpu.holders)},
          {"sharing_mode", mode},
          {"way", mode},  // the old name
          {"switches", JsonArray(switches.begin(), switches.end())}};
}

std::vector<std::string> Sampler::Records(const NodeSample& sample, std::span<const XidEvent> xids,
                                          Time now) {
  std::vector<std::string> records;
  JsonArray gpus;
  for (const SampledGpu& gpu : sample.gpus) gpus.push_back(LayoutOf(sample, gpu));
  const JsonObject layout{
      {"node", sample.node}, {"mode", ModeOf(sample)}, {"gpus", std::move(gpus)}};
  std::string text = WriteJson(layout);
  if (sample.holders_status.ok() && (text != layout_ || now - layout_at_ >= layout_every_)) {
    records.push_back(Record("layout", now, layout));
    layout_ = std::move(text);
    layout_at_ = now;
  }
  for (const XidEvent& event : xids) records.push_back(XidRecord(sample, event));
  for (const SampledGpu& gpu : sample.gpus) {
    if (gpu.info.uuid.empty()) continue;  // it never answered: the layout reports it
    records.push_back(Record("gpu", now, GpuFields(gpu)));
    for (const SampledInstance& sampled : gpu.instances) {
      if (sampled.instance.uuid.empty()) continue;
      records.push_back(Record("instance", now, InstanceFields(gpu, sampled)));
    }
  }
  return records;
}

Json SampleJson(const NodeSample& sample) {
  JsonArray gpus;
  for (const SampledGpu& gpu : sample.gpus) {
    JsonObject json = GpuFields(gpu);
    JsonArray instances;
    for (const SampledInstance& sampled : gpu.instances) {
      JsonObject instance = InstanceFields(gpu, sampled);
      instance["profile"] = sampled.instance.profile;
      instance["start"] = sampled.instance.start;
      instance["holders"] = HoldersJson(sampled.holders);
      instances.push_back(std::move(instance));
    }
    json["health"] = gpu.health;
    json["sharing_mode"] = gpu.sharing_mode;
    json["way"] = gpu.sharing_mode;  // the old name
    json["instances"] = std::move(instances);
    if (!gpu.instances_status.ok()) json["instancesProblem"] = gpu.instances_status.message();
    json["holders"] = HoldersJson(gpu.holders);
    gpus.push_back(std::move(json));
  }
  JsonObject json{{"node", sample.node}, {"gpus", std::move(gpus)}};
  if (!sample.holders_status.ok()) json["holdersProblem"] = sample.holders_status.message();
  return json;
}

}  // namespace nos::telemetry
