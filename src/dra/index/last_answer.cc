#include "dra/index/last_answer.h"

#include <algorithm>
#include <utility>

#include "dra/allocation/prepared.h"

namespace nos::dra {

LastAnswer::Question LastAnswer::QuestionOf(const PreparedClaims& claims,
                                            const std::shared_ptr<const cluster::Node>& node,
                                            uint64_t version, const AllocationOptions& options) {
  Question question{
      version, node, {}, {}, options.first_alternative, options.optional_node_operations};
  for (const PreparedClaim& claim : claims.claims()) {
    question.specs.push_back(claim.claim->spec);
    for (const auto& alternatives : claim.requests) {
      for (const PreparedRequest& request : alternatives) {
        question.classes.push_back(request.device_class);
      }
    }
  }
  return question;
}

void LastAnswer::Remember(const PreparedClaims& claims,
                          const std::shared_ptr<const cluster::Node>& node, uint64_t version,
                          const AllocationOptions& options, const AllocationOutcome& outcome) {
  question_.reset();
  // A search that was too long in the ranking's order finds better devices with more steps.
  if (outcome.kind != AllocationOutcome::Kind::kAllocated || !outcome.ranked) return;
  const auto unknown = [](const PreparedClaim& claim) { return claim.claim->spec.empty(); };
  if (std::ranges::any_of(claims.claims(), unknown)) return;  // their specs cannot be compared
  question_ = QuestionOf(claims, node, version, options);
  max_steps_ = options.max_steps;
  outcome_ = outcome;
}

std::optional<AllocationOutcome> LastAnswer::Recall(
    const PreparedClaims& claims, const std::shared_ptr<const cluster::Node>& node,
    uint64_t version, const AllocationOptions& options) const {
  if (!question_ || question_->version != version || question_->node != node) return std::nullopt;
  if (options.max_steps < max_steps_) return std::nullopt;
  if (question_ != QuestionOf(claims, node, version, options)) return std::nullopt;
  AllocationOutcome outcome = outcome_;
  for (size_t i = 0; i < outcome.allocations.size(); ++i) {
    for (AllocatedDevice& device : outcome.allocations[i].devices) {
      if (!device.share_id.empty()) device.share_id = ShareIdOf(*claims.claims()[i].claim, device);
    }
  }
  return outcome;
}

}  // namespace nos::dra
