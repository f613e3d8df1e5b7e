// Keeps the outcome of the last search for devices. The scheduler needs it three times in a row for
// one pod on one node: to filter, to score and to reserve.
//
//   LastAnswer last;
//   if (auto known = last.Recall(claims, node, version, options)) return *std::move(known);
//   AllocationOutcome outcome = Allocate(inventory, claims, *node, options);
//   last.Remember(claims, node, version, options, outcome);
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "cluster/objects.h"
#include "dra/allocator.h"
#include "dra/objects.h"

namespace nos::dra {

class LastAnswer {
 public:
  // `version`: Inventory::version(). All searches use the same ranking.
  void Remember(const PreparedClaims& claims, const std::shared_ptr<const cluster::Node>& node,
                uint64_t version, const AllocationOptions& options,
                const AllocationOutcome& outcome);
  // Returns the outcome that a search would have, with the share ids of these claims. Absent if the
  // last search was for claims of other specs or classes, or if anything has changed since.
  std::optional<AllocationOutcome> Recall(const PreparedClaims& claims,
                                          const std::shared_ptr<const cluster::Node>& node,
                                          uint64_t version, const AllocationOptions& options) const;

 private:
  struct Question {
    uint64_t version = 0;
    std::shared_ptr<const cluster::Node> node;
    std::vector<Name> specs;
    std::vector<std::shared_ptr<const DeviceClass>> classes;  // of all requests
    size_t first_alternative = 0;
    bool optional_node_operations = false;
    friend bool operator==(const Question&, const Question&) = default;
  };
  static Question QuestionOf(const PreparedClaims& claims,
                             const std::shared_ptr<const cluster::Node>& node, uint64_t version,
                             const AllocationOptions& options);

  std::optional<Question> question_;
  int64_t max_steps_ = 0;
  AllocationOutcome outcome_;
};

}  // namespace nos::dra
