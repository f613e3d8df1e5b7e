#include "telemetryserver/ingest/live.h"

#include <fmt/format.h>

namespace nos::telemetryserver {
namespace {

constexpr size_t kMaxClusters = 100;

}  // namespace

bool LiveClusters::Look(const std::string& name, FunctionRef<void(const Live&)> visit) const {
  const std::shared_lock lock(mutex_);
  const auto found = live_.find(name);
  if (found == live_.end()) return false;
  visit(*found->second);
  return true;
}

void LiveClusters::LookAtAll(FunctionRef<void(const Live&)> visit) const {
  const std::shared_lock lock(mutex_);
  for (const auto& [name, live] : live_) visit(*live);
}

std::vector<std::string> LiveClusters::Names() const {
  const std::shared_lock lock(mutex_);
  std::vector<std::string> names;
  names.reserve(live_.size());
  for (const auto& [name, live] : live_) names.push_back(name);
  return names;
}

Status LiveClusters::Accepts(const std::string& name) const {
  const std::shared_lock lock(mutex_);
  if (live_.size() < kMaxClusters || live_.contains(name)) return Status::Ok();
  return Invalid(fmt::format("there are {} clusters already", live_.size()));
}

Live& LiveClusters::Of(int64_t id, const std::string& name) {
  std::unique_ptr<Live>& live = live_[name];
  if (live == nullptr) {
    live = std::make_unique<Live>();
    live->id = id;
    live->name = name;
  }
  return *live;
}

size_t LiveClusters::samples() const {
  size_t samples = 0;
  for (const auto& [name, live] : live_) samples += live->heads.samples();
  return samples;
}

}  // namespace nos::telemetryserver
