// Advances relocations step by step. Internal to relocations.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "controllers/relocation/scene.h"

namespace nos::controllers {

// Sets or removes the mark together with the cordon. Error: kConflict if `node` has changed since
// it was read. Returns the node after the patch.
Result<Json> MarkNode(const cluster::Node& node, const Removal& removal, kube::Client& client);
Result<Json> UnmarkNode(const cluster::Node& node, kube::Client& client);
// Removes only the mark: it is unknown who cordoned the node.
Result<Json> DropMark(const cluster::Node& node, kube::Client& client);
// For nodes that pods move away from. `moved`: all moves of the last hour, including the current
// one.
Result<Json> MarkNode(const cluster::Node& node, const MovesAway& mark, const MovedById& moved,
                      kube::Client& client);
Result<Json> ReopenNode(const cluster::Node& node, kube::Client& client);
// Deletes the pod only if it has this uid.
Status DeletePlaceholder(const cluster::ObjectMeta& meta, kube::Client& client);

// Time after which the caches show an earlier write.
inline constexpr Duration kSettle = std::chrono::seconds(10);

class RelocationSteps {
 public:
  // All arguments must outlive this object.
  RelocationSteps(const RelocationConfig& config, const reconcile::Listers& view,
                  kube::Client& client, Time now, std::map<std::string, RelocationMemory>& memory,
                  std::vector<RelocationNote>& notes);

  reconcile::ReconcileResult All();
  // See Relocations::CallOff.
  bool CallOff(const std::string& node, std::string_view why);

 private:
  using Pod = std::shared_ptr<const cluster::Pod>;

  // The state of a relocation before its next step.
  struct Finding {
    std::string off;    // why it must be called off; empty: it continues
    bool wait = false;  // something is missing, but may not be in the caches yet
  };
  struct Release {
    Place* place;
    std::string successor;  // uid; empty: none
  };

  void ClearWhatIsBad();
  void GoOn(Moving& moving);
  Finding Look(const Moving& moving);
  Finding LookForLost(const Moving& moving);
  Finding LookAtMark(const Moving& moving);
  Finding LookAtPlaces(const Moving& moving);
  std::string WhyContradictory(const Moving& moving);
  std::string WhyNoRoomWanted(const Moving& moving) const;
  std::string WhyNotMoved(const Place& place) const;
  std::string WhyTooLate(const Moving& moving);

  // Uncordons the node, unless its pool has been asked to remove it, and deletes the placeholders
  // of pods that were not evicted.
  void TakeDown(Moving& moving, const std::string& why);
  void GiveUpPlaces(Moving& moving, const std::string& why);
  void Hold(Moving& moving);
  void Drain(Moving& moving);
  // Returns why the relocation must be called off. Empty: it continues.
  std::string Evict(const Moving& moving, const Place& place);
  // Finds evicted pods whose successors exist, or will not be created.
  void AwaitSuccessors();
  const cluster::Pod* FindSuccessor(const Place& place) const;
  bool CountsAsSuccessor(const Place& place, const cluster::Pod& pod) const;
  Time WaitsUntil(const Place& place);
  void ReleasePlaces();
  // Records in the placeholder which others are released now. False: the write failed.
  bool TellOf(Place& place);
  void SeeWhetherEmpty(Moving& moving);
  // Uncordons nodes that pods have left.
  void ReopenNodes();
  Time ReopensAt(const MovesAway& mark, const std::set<std::string_view>& homeless);
  void Forget();

  // The relocation is so new that the caches may miss parts of it.
  bool IsYoung(const Moving& moving);
  bool IsLetGo(const Place& place) const;
  // Neither evicted nor ended.
  bool IsLeft(const Place& place) const { return place.Remains() && !IsLetGo(place); }
  bool AnyIsLeft(const Moving& moving) const;
  bool Write(Place& place, const PlaceFor& what);
  Status Delete(const Place& place);
  void Failed(const Status& status, std::string_view doing);
  void Due(Time time);
  void Note(const Moving& moving, RelocationNote::Kind kind, std::string message,
            const Place* place = nullptr);

  const RelocationConfig& config_;
  const reconcile::Listers& view_;
  kube::Client& client_;
  const Time now_;
  std::map<std::string, RelocationMemory>& memory_;
  std::vector<RelocationNote>& notes_;
  MovingScene scene_;
  std::map<std::string, std::string> claimed_;  // by uid of a moved pod: its relocation
  std::vector<Place*> waiting_;                 // for successors
  std::vector<Release> released_;
  std::set<std::string> gone_;      // keys of placeholders deleted in this call
  std::set<std::string> moved_;     // uids of all pods that have placeholders
  std::set<std::string> taken_up_;  // uids of successors used in this call
  Status error_;
  std::optional<Time> due_;
};

}  // namespace nos::controllers
