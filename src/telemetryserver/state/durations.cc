#include "telemetryserver/state/durations.h"

#include <algorithm>
#include <utility>

namespace nos::telemetryserver {
namespace {

constexpr std::string_view kKind = "durations";

}  // namespace

void Durations::AddRun(const std::vector<std::string>& keys, telemetry::Millis took) {
  for (const std::string& key : keys) {
    if (in_all_ >= kMaxRunsInAll || (runs_.size() >= kMaxKeys && !runs_.contains(key))) {
      ForgetHalf();
    }
    Runs& runs = runs_[key];
    runs.took.push_back(took);
    runs.added = ++added_;
    ++in_all_;
    if (runs.took.size() > kMaxRuns) {
      runs.took.pop_front();
      --in_all_;
    }
  }
}

// Removes half of the keys at once, so that the cost per addition stays small.
void Durations::ForgetHalf() {
  std::vector<uint64_t> order;
  order.reserve(runs_.size());
  for (const auto& [key, runs] : runs_) order.push_back(runs.added);
  const auto middle = order.begin() + static_cast<std::ptrdiff_t>(order.size() / 2);
  std::ranges::nth_element(order, middle);
  std::erase_if(runs_, [&](const auto& entry) {
    if (entry.second.added >= *middle) return false;
    in_all_ -= entry.second.took.size();
    return true;
  });
}

void Durations::AddWait(telemetry::Millis scheduled, telemetry::Millis waited) {
  waits_.emplace_back(scheduled, waited);
  if (waits_.size() > kMaxWaits) waits_.pop_front();
}

const std::deque<telemetry::Millis>* Durations::RunsOf(const std::string& key) const {
  const auto found = runs_.find(key);
  return found == runs_.end() ? nullptr : &found->second.took;
}

std::vector<telemetry::Millis> Durations::WaitsSince(telemetry::Millis from) const {
  std::vector<telemetry::Millis> waits;
  for (const auto& [scheduled, waited] : waits_) {
    if (scheduled >= from) waits.push_back(waited);
  }
  return waits;
}

Json Durations::ToJson(telemetry::Millis at) const {
  std::vector<std::pair<uint64_t, const std::string*>> order;
  order.reserve(runs_.size());
  for (const auto& [key, runs] : runs_) order.emplace_back(runs.added, &key);
  std::ranges::sort(order);
  JsonArray all;
  for (const auto& [added, key] : order) {
    JsonArray row = {*key};
    for (const telemetry::Millis took : runs_.at(*key).took) row.emplace_back(took);
    all.push_back(std::move(row));
  }
  JsonArray waits;
  for (const auto& [scheduled, waited] : waits_) {
    if (scheduled >= at - kWaitsKept) waits.push_back(JsonArray{scheduled, waited});
  }
  return {{"kind", kKind}, {"at", at}, {"runs", std::move(all)}, {"waits", std::move(waits)}};
}

bool Durations::IsRecord(const Json& record) { return FindString(record, "kind") == kKind; }

void Durations::Read(const Json& record) {
  *this = {};
  telemetry::EachRow(record, "runs", [&](const JsonArray& row) {
    if (!row[0].is_string()) return;
    const std::vector<std::string> key = {std::string(View(row[0].get_string()))};
    for (size_t i = 1; i < row.size(); ++i) {
      if (row[i].is_int64() && row[i].get_int64() >= 0) AddRun(key, row[i].get_int64());
    }
  });
  telemetry::EachRow(record, "waits", [&](const JsonArray& row) {
    if (row.size() < 2 || !row[0].is_int64() || !row[1].is_int64()) return;
    AddWait(row[0].get_int64(), row[1].get_int64());
  });
}

}  // namespace nos::telemetryserver
