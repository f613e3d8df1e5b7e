#include "telemetryserver/state/tombstones.h"

#include <algorithm>

namespace nos::telemetryserver {
namespace {

constexpr std::string_view kKind = "gone";

}  // namespace

const Tombstones::Kind* Tombstones::Find(std::string_view what) const {
  const auto found = kinds_.find(what);
  return found == kinds_.end() ? nullptr : &found->second;
}

Tombstones::Kind& Tombstones::Of(std::string_view what) {
  const auto found = kinds_.find(what);
  return found == kinds_.end() ? kinds_[std::string(what)] : found->second;
}

void Tombstones::Forget(Kind& kind) {
  kind.removed.erase(kind.order.begin()->second);
  kind.order.erase(kind.order.begin());
}

void Tombstones::List(std::string_view what, telemetry::Millis at) {
  Kind& kind = Of(what);
  kind.listed = std::max(kind.listed, at);
  while (!kind.order.empty() && kind.order.begin()->first <= kind.listed) Forget(kind);
}

void Tombstones::Remove(std::string_view what, const std::string& key, telemetry::Millis at) {
  if (at <= Since(what, key)) return;
  Kind& kind = Of(what);
  if (const auto known = kind.removed.find(key); known != kind.removed.end()) {
    kind.order.erase({known->second, key});
  }
  kind.removed[key] = at;
  kind.order.emplace(at, key);
  if (kind.removed.size() > kMaxRemovalsPerKind) Forget(kind);
}

void Tombstones::NotAfter(telemetry::Millis now) {
  for (auto& [what, kind] : kinds_) {
    kind.listed = std::min(kind.listed, now);
    kind.order.clear();
    for (auto& [key, at] : kind.removed) kind.order.emplace(at = std::min(at, now), key);
  }
}

telemetry::Millis Tombstones::Since(std::string_view what, const std::string& key) const {
  const Kind* kind = Find(what);
  if (kind == nullptr) return -1;
  const auto removed = kind->removed.find(key);
  return removed == kind->removed.end() ? kind->listed : removed->second;
}

telemetry::Millis Tombstones::ListedAt(std::string_view what) const {
  const Kind* kind = Find(what);
  return kind == nullptr ? -1 : kind->listed;
}

Json Tombstones::ToJson(telemetry::Millis at) const {
  JsonArray listed, removed;
  for (const auto& [what, kind] : kinds_) {
    listed.push_back(JsonArray{what, kind.listed});
    for (const auto& [when, key] : kind.order) removed.push_back(JsonArray{what, key, when});
  }
  return {
      {"kind", kKind}, {"at", at}, {"listed", std::move(listed)}, {"removed", std::move(removed)}};
}

bool Tombstones::IsRecord(const Json& record) { return FindString(record, "kind") == kKind; }

void Tombstones::Read(const Json& record) {
  const auto text = [](const Json& json) {
    return json.is_string() ? std::string(View(json.get_string())) : std::string();
  };
  telemetry::EachRow(record, "listed", [&](const JsonArray& row) {
    if (row.size() >= 2 && row[1].is_int64()) List(text(row[0]), row[1].get_int64());
  });
  telemetry::EachRow(record, "removed", [&](const JsonArray& row) {
    if (row.size() < 3 || !row[2].is_int64()) return;
    Remove(text(row[0]), text(row[1]), row[2].get_int64());
  });
}

}  // namespace nos::telemetryserver
