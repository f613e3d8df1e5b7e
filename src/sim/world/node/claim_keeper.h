// The controller "resourceclaim" of kube-controller-manager (pkg/controller/resourceclaim):
// - makes a claim from the template for each pod that names one, and records its name in the status
//   of the pod;
// - reserves an allocated claim for a pod that was bound without a scheduler;
// - removes pods that have ended or are gone from status.reservedFor; with the last one it clears
//   the allocation and the finalizer that the scheduler set;
// - deletes claims that were made for a pod once that pod has ended.
// The garbage collector's part is here too: claims whose pod is gone are deleted.
//
// One thread.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cluster/objects.h"
#include "kube/cache.h"
#include "kube/client.h"
#include "sim/world/events/actor.h"
#include "sim/world/events/log.h"

namespace nos::sim {

extern const kube::Resource kResourceClaims, kClaimTemplates;

// Keeps an allocated claim while a pod may use its devices.
inline constexpr char kClaimFinalizer[] = "resource.kubernetes.io/delete-protection";
// On a claim made from a template: the name of the entry in spec.resourceClaims.
inline constexpr char kPodClaimName[] = "resource.kubernetes.io/pod-claim-name";

class ClaimKeeper final : public Actor {
 public:
  ClaimKeeper(kube::Transport& api, const Clock& clock, EventLog& log);

  const std::string& name() const override { return name_; }
  bool Step() override;
  std::optional<Time> NextWake() const override;
  // Takes note of changes of pods and claims.
  void Watch();
  // True once there was a claim or a pod that names one. Before that there is nothing to do.
  bool any() const { return any_; }
  static constexpr Duration kRetry = std::chrono::seconds(1);

 private:
  // An entry of spec.resourceClaims, with what the status says about it.
  struct Reference {
    std::string name, claim, template_name;
    bool unneeded = false;
  };
  struct User {
    cluster::ObjectMeta meta;  // only names, versions and deletion
    std::string node;
    bool finished = false;
    std::vector<Reference> references;
    std::string extended;  // the claim for extended resources, by the status
    // No container of it runs or will ever run.
    bool Done() const { return finished || (meta.deleted && node.empty()); }
  };
  struct Claim {
    cluster::ObjectMeta meta;
    Json object;
  };
  using UserPtr = std::shared_ptr<const User>;
  using ClaimPtr = std::shared_ptr<const Claim>;
  // Keys with the earliest time of their next visit.
  using Due = std::map<std::string, Time>;

  static Status ReadUser(JsonSource json, User& to);
  static Status ReadClaim(JsonSource json, Claim& to);
  void OnPod(const std::string& key, const UserPtr& before, const UserPtr& after);
  void OnClaim(const std::string& key, const ClaimPtr& before, const ClaimPtr& after);
  bool Visit(Due& due, Status (ClaimKeeper::*sync)(const std::string& key));
  Status SyncPod(const std::string& key);
  Status SyncClaim(const std::string& key);
  ClaimPtr FindMade(const User& pod, const Reference& reference) const;
  Result<std::string> Make(const User& pod, const Reference& reference);
  Status Record(const User& pod, const std::map<std::string, std::string>& made);
  Status Reserve(const User& pod, const std::string& claim);
  bool Uses(const std::string& ns, const Json& consumer) const;
  Status Release(Json claim, JsonArray left);
  Status Deallocate(Json claim);
  Status DeleteMade(const Claim& claim);

  std::string name_ = "claim keeper";
  kube::Client client_;
  const Clock& clock_;
  EventLog& log_;
  kube::Cache<User> pods_;
  kube::Cache<Claim> claims_;
  Due pods_due_, claims_due_;
  bool any_ = false;
};

}  // namespace nos::sim
