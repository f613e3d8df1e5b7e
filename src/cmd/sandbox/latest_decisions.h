// Decision records of a collector as they were reported last, for the sandbox's view.
//
//   LatestDecisions latest;
//   latest.Add(record);                          // ignores records of other kinds
//   telemetryserver::StoriesOf(latest.All())
//
// Bounded: the last kMax decisions.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "codec/json.h"

namespace nos::cmd {

class LatestDecisions {
 public:
  static constexpr size_t kMax = 1000;

  void Add(const Json& record) {
    if (FindString(record, "kind") != "decision") return;
    std::string id(FindString(record, "id"));
    const auto [known, fresh] = by_id_.insert_or_assign(id, record);
    if (fresh) order_.push_back(std::move(id));
    if (order_.size() <= kMax) return;
    by_id_.erase(order_.front());
    order_.pop_front();
  }
  std::vector<Json> All() const {
    std::vector<Json> all;
    all.reserve(by_id_.size());
    for (const auto& [id, record] : by_id_) all.push_back(record);
    return all;
  }

 private:
  std::map<std::string, Json> by_id_;
  std::deque<std::string> order_;  // ids, in the order of their first records
};

}  // namespace nos::cmd
