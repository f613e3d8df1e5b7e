#include "telemetryserver/state/readings.h"

#include <algorithm>
#include <set>

namespace nos::telemetryserver {
namespace {

constexpr size_t kMaxSubjects = 1'000'000;
// Maximum number of subjects with readings that are in no layout yet.
constexpr size_t kMaxUnplaced = 10'000;

}  // namespace

std::string SubjectOf(const telemetry::Gpu& gpu) { return "gpu/" + gpu.uuid; }
std::string SubjectOf(const telemetry::Instance& instance) { return "instance/" + instance.uuid; }

const std::string* ReadingTable::Add(telemetry::Millis at, const telemetry::Readings& readings) {
  const auto found = latest_.find(readings.subject);
  const size_t most = std::min(kMaxSubjects, node_of_.size() + kMaxUnplaced);
  if (found == latest_.end() && latest_.size() >= most) return nullptr;
  Latest& latest = found == latest_.end() ? latest_[readings.subject] : found->second;
  if (at < latest.at) return nullptr;
  latest = {at, readings};
  return NodeOf(readings.subject);
}

const std::string* ReadingTable::NodeOf(const std::string& subject) const {
  const auto found = node_of_.find(subject);
  return found == node_of_.end() ? nullptr : &found->second;
}

bool ReadingTable::Leave(const std::string& node, const std::string& subject) {
  const auto found = node_of_.find(subject);
  if (found == node_of_.end() || found->second != node) return false;  // another node has it now
  node_of_.erase(found);
  return true;
}

void ReadingTable::Move(const std::string& node, const telemetry::Layout& before,
                        const telemetry::Layout& after) {
  std::set<std::string> gone;
  for (const telemetry::Gpu& gpu : before.gpus) {
    Leave(node, SubjectOf(gpu));
    for (const telemetry::Instance& instance : gpu.instances) {
      if (Leave(node, SubjectOf(instance))) gone.insert(SubjectOf(instance));
    }
  }
  for (const telemetry::Gpu& gpu : after.gpus) {
    node_of_[SubjectOf(gpu)] = node;
    for (const telemetry::Instance& instance : gpu.instances) {
      node_of_[SubjectOf(instance)] = node;
      gone.erase(SubjectOf(instance));
    }
  }
  for (const std::string& subject : gone) latest_.erase(subject);
}

void ReadingTable::NotAfter(telemetry::Millis now) {
  for (auto& [subject, latest] : latest_) latest.at = std::min(latest.at, now);
}

const Latest* ReadingTable::Of(std::string_view kind, const std::string& uuid) const {
  // Reuses the buffer, because this is called for each slice of a fleet.
  static thread_local std::string subject;
  subject.assign(kind).append("/").append(uuid);
  const auto found = latest_.find(subject);
  return found == latest_.end() ? nullptr : &found->second;
}

}  // namespace nos::telemetryserver
