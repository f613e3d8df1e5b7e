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
  if (entries_.entries().size() >= kMaxEntries) entries_.Clear();
  const std::string name = operation.ToString();
  const bool definite = IsDefinite(error.code());
  auto& entry = definite ? entries_.RestLongest(name, now) : entries_.Failed(name, now);
  entry.note = {operation, error, definite};
}

void Failures::Keep(const std::set<std::string>& names) {
  entries_.ForgetIf([&](const std::string& name, const auto&) { return !names.contains(name); });
}

bool Failures::GivenUp(const device::Operation& operation) const {
  const Table::Entry* entry = entries_.Find(operation.ToString());
  return entry != nullptr && GivenUp(*entry);
}

bool Failures::AllGivenUp() const {
  return std::ranges::all_of(entries_.entries(),
                             [&](const auto& item) { return GivenUp(item.second); });
}

bool Failures::CannotEnableMig(int gpu) const {
  return std::ranges::any_of(entries_.entries(), [&](const auto& item) {
    const Failure& failure = item.second.note;
    return failure.definite && failure.operation.gpu == gpu &&
           failure.operation.kind == device::Operation::Kind::kEnableMig;
  });
}

std::vector<gpu::Obstacle> Failures::Obstacles() const {
  std::vector<gpu::Obstacle> obstacles;
  for (const auto& [name, entry] : entries_.entries()) {
    const device::Operation& operation = entry.note.operation;
    obstacles.push_back(
        {operation.gpu,
         operation.profile.empty() ? "" : fmt::format("{}@{}", operation.profile, operation.start),
         gpu::obstacles::kDeviceError,
         fmt::format("{} failed: {}", name, entry.note.error.message())});
  }
  return obstacles;
}

}  // namespace nos::agent
