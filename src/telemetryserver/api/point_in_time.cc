#include "telemetryserver/api/point_in_time.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

namespace nos::telemetryserver {
namespace {

struct Subjects {
  std::vector<std::string> names;
  std::unordered_map<std::string, std::string> node_of;

  void Add(std::string name, const std::string& node) {
    if (names.size() >= kMaxMeasured) return;
    node_of.emplace(name, node);
    names.push_back(std::move(name));
  }
};

Subjects SubjectsOf(const State& state) {
  Subjects subjects;
  const auto each = [&](auto visit) {
    for (const auto& [name, node] : state.nodes()) {
      for (const telemetry::Gpu& gpu : node.layout.gpus) visit(name, gpu);
    }
  };
  each([&](const std::string& node, const telemetry::Gpu& gpu) {
    subjects.Add("gpu/" + gpu.uuid, node);
  });
  each([&](const std::string& node, const telemetry::Gpu& gpu) {
    for (const telemetry::Instance& instance : gpu.instances)
      subjects.Add("instance/" + instance.uuid, node);
  });
  return subjects;
}

// The last sample that is still in memory.
bool LastOf(const Heads& heads, const std::string& subject, telemetry::Millis from,
            telemetry::Millis at, telemetry::Readings& readings, telemetry::Millis& latest) {
  const auto found = heads.all().find(subject);
  if (found == heads.all().end()) return false;
  const SampleBlock& block = found->second.block;
  readings.subject = subject;
  for (size_t m = 0; m < found->second.metrics.size(); ++m) {
    telemetry::Millis known = 0;
    double value = 0;
    for (size_t i = 0; i < block.times.size(); ++i) {
      const telemetry::Millis time = block.times[i];
      if (time <= from || time > at || time < known || std::isnan(block.columns[m][i])) continue;
      known = time;
      value = block.columns[m][i];
    }
    if (known == 0) continue;
    readings.metrics.emplace_back(found->second.metrics[m], value);
    latest = std::max(latest, known);
  }
  return latest > 0;
}

}  // namespace

Status AddMeasured(Recorder& recorder, const std::string& cluster, telemetry::Millis at,
                   State& state) {
  const Subjects subjects = SubjectsOf(state);
  const auto add = [&](telemetry::Millis time, telemetry::Readings readings) {
    const std::string source = "node/" + subjects.node_of.at(readings.subject);
    state.Apply({time, "", nullptr, std::move(readings)}, source);
  };
  int64_t id = 0;
  recorder.Look(cluster, [&](const Live& live) { id = live.id; });
  NOS_RETURN_IF_ERROR(
      recorder.archive().Measured(id, subjects.names, at, recorder.stale(), recorder.Now(), add));
  // Samples flushed between the two reads are in the file, or already counted as older.
  std::vector<std::pair<telemetry::Millis, telemetry::Readings>> fresh;
  recorder.Look(cluster, [&](const Live& live) {
    for (const std::string& subject : subjects.names) {
      telemetry::Readings readings;
      telemetry::Millis latest = 0;
      if (LastOf(live.heads, subject, at - recorder.stale(), at, readings, latest)) {
        fresh.emplace_back(latest, std::move(readings));
      }
    }
  });
  for (auto& [time, readings] : fresh) add(time, std::move(readings));
  return Status::Ok();
}

}  // namespace nos::telemetryserver
