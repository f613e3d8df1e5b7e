#include "agent/node/failures.h"

#include <fmt/core.h>

#include <algorithm>

namespace nos::agent {
namespace {

constexpr size_t kMaxEntries = 4096;

bool IsDefinite(Code code) {
  return code == Code::kInvalid || code == Code::kPermission || code == Code::kUnimplemented;
}

}  // namespace

void Failures::Record(const device::Operation& operation, const Status& error, Time now) {
  if (entries_.size() >= kMaxEntries) entries_.clear();
  Entry& entry = entries_[operation.ToString()];
  entry.operation = operation;
  entry.error = error;
  entry.definite = IsDefinite(error.code());
  entry.retry_at = now + (entry.definite ? pauses_.limit : pauses_.After(++entry.count));
}

void Failures::Succeeded(const device::Operation& operation) {
  entries_.erase(operation.ToString());
}

void Failures::Keep(const std::set<std::string>& names) {
  std::erase_if(entries_, [&](const auto& item) { return !names.contains(item.first); });
}

bool Failures::Pausing(const device::Operation& operation, Time now) const {
  const auto found = entries_.find(operation.ToString());
  return found != entries_.end() && found->second.retry_at > now;
}

std::optional<Time> Failures::NextRetry(Time now) const {
  std::optional<Time> next;
  for (const auto& [name, entry] : entries_) {
    if (entry.retry_at > now) next = std::min(next.value_or(entry.retry_at), entry.retry_at);
  }
  return next;
}

bool Failures::GivenUp(const device::Operation& operation) const {
  const auto found = entries_.find(operation.ToString());
  return found != entries_.end() && GivenUp(found->second);
}

bool Failures::AllGivenUp() const {
  return std::all_of(entries_.begin(), entries_.end(),
                     [&](const auto& item) { return GivenUp(item.second); });
}

bool Failures::CannotEnableMig(int gpu) const {
  return std::any_of(entries_.begin(), entries_.end(), [&](const auto& item) {
    const Entry& entry = item.second;
    return entry.definite && entry.operation.gpu == gpu &&
           entry.operation.kind == device::Operation::Kind::kEnableMig;
  });
}

std::vector<gpu::Obstacle> Failures::Obstacles() const {
  std::vector<gpu::Obstacle> obstacles;
  for (const auto& [name, entry] : entries_) {
    const device::Operation& operation = entry.operation;
    obstacles.push_back(
        {operation.gpu,
         operation.profile.empty() ? "" : fmt::format("{}@{}", operation.profile, operation.start),
         "DeviceError", fmt::format("{} failed: {}", name, entry.error.message())});
  }
  return obstacles;
}

}  // namespace nos::agent
