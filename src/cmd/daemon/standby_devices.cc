#include "cmd/daemon/standby_devices.h"

#include <utility>
#include <vector>

#include "dra/cel_expressions.h"
#include "dra/context.h"

namespace nos::cmd {
namespace {

// Limit of the kinds of claims whose expressions are evaluated: a tenant may write any number.
constexpr size_t kMaxSpecs = 16;
// Nodes between two looks at watch events and the Lease. Some 10 ms for each kind of claim.
constexpr size_t kNodesPerCall = 50;

}  // namespace

StandbyDevices::StandbyDevices(const gpu::Catalogue& catalogue)
    : devices_(std::make_shared<dra::DeviceIndex>(
          dra::Features::All(), std::make_shared<dra::CelExpressions>(), catalogue)) {}

reconcile::ReconcileResult StandbyDevices::Reconcile(const std::string&,
                                                     const reconcile::Listers& view, kube::Client&,
                                                     const Clock&) {
  if (view.changes->everything) {
    ReadEverything(view);
  } else {
    for (const reconcile::ContextChange& change : view.changes->context) Follow(change, view);
  }
  const dra::FindClass find_class = [&](const std::string& name) {
    return context_.device_classes.Share(name);
  };
  std::vector<dra::PreparedClaims> claims;
  if (!due_.empty()) {
    for (const auto& [spec, claim] : specs_) {
      claims.emplace_back(std::vector{claim}, find_class, devices_->features());
    }
  }
  for (size_t i = 0; i < kNodesPerCall && !due_.empty(); ++i) {
    const auto node = view.nodes.Get(due_.extract(due_.begin()).value());
    if (node != nullptr) devices_->Prefetch(*node, claims);
  }
  using reconcile::ReconcileResult;
  return due_.empty() ? ReconcileResult::Done() : ReconcileResult::Again(Duration::zero());
}

void StandbyDevices::ReadEverything(const reconcile::Listers& view) {
  context_ = view.context->Collect();
  devices_->Reset(context_);
  read_ = true;
  specs_.clear();
  for (const auto& [key, claim] : context_.device_claims.rows()) AddSpec(claim);
  AllAreDue(view);
}

void StandbyDevices::Follow(const reconcile::ContextChange& change,
                            const reconcile::Listers& view) {
  if (!dra::IsDeviceKind(change.kind)) return;
  change.apply(context_);
  const dra::DeviceIndex::Affected affected = devices_->Follow(change.kind, change.key, context_);
  if (change.kind == dra::kClaimKind) {  // the use of devices needs no preparation
    const Claim& claim = devices_->FindClaim(change.key);
    if (claim != nullptr && AddSpec(claim)) AllAreDue(view);
    return;
  }
  if (affected.all) AllAreDue(view);
  due_.insert(affected.nodes.begin(), affected.nodes.end());
}

bool StandbyDevices::AddSpec(const Claim& claim) {
  if (specs_.size() >= kMaxSpecs || specs_.contains(claim->spec)) return false;
  auto waiting = std::make_shared<dra::ResourceClaim>(*claim);
  waiting->allocation.reset();
  specs_.emplace(claim->spec, std::move(waiting));
  return true;
}

void StandbyDevices::AllAreDue(const reconcile::Listers& view) {
  for (const auto& node : *view.nodes.Snapshot()) due_.insert(node->meta.name);
}

}  // namespace nos::cmd
