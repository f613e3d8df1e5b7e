// The next thing for each relocation. Internal to relocations.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "controllers/relocation/scene.h"

namespace nos::controllers {

// The mark and, with it, the cordon. `node` must not have changed since it was read (kConflict).
// Return the node as it is then.
Result<Json> MarkNode(const cluster::Node& node, const Removal& removal, kube::Client& client);
Result<Json> UnmarkNode(const cluster::Node& node, kube::Client& client);
// The mark alone: who has cordoned the node is not known.
Result<Json> DropMark(const cluster::Node& node, kube::Client& client);
// The same of nodes that pods move away from. `moved`: all of the last hour, with what moves now.
Result<Json> MarkNode(const cluster::Node& node, const MovesAway& mark, const MovedById& moved,
                      kube::Client& client);
Result<Json> ReopenNode(const cluster::Node& node, kube::Client& client);
// The pod of this uid, if there is one of this name still.
Status DeletePlaceholder(const cluster::ObjectMeta& meta, kube::Client& client);

// Caches show by then what was written before.
inline constexpr Duration kSettle = std::chrono::seconds(10);

class RelocationSteps {
 public:
  // All must outlive this.
  RelocationSteps(const RelocationConfig& config, const reconcile::View& view, kube::Client& client, Time now,
                  std::map<std::string, RelocationMemory>& memory,
                  std::vector<RelocationNote>& notes);

  reconcile::Outcome All();
  // See Relocations::CallOff.
  bool CallOff(const std::string& node, std::string_view why);

 private:
  using Pod = std::shared_ptr<const cluster::Pod>;

  // What is found of a relocation before anything is done.
  struct Finding {
    std::string off;    // why it cannot go on; "": it can
    bool wait = false;  // what is missing may not have been seen yet
  };
  struct Release {
    Place* place;
    std::string successor;  // uid; "": none
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

  // The node takes pods again, unless its pool knows already, and places of pods that stay are
  // given up.
  void TakeDown(Moving& moving, const std::string& why);
  void GiveUpPlaces(Moving& moving, const std::string& why);
  void Hold(Moving& moving);
  void Drain(Moving& moving);
  // Why the others are not to go on; "": they are.
  std::string Evict(const Moving& moving, const Place& place);
  // Of pods that were evicted: whose successors are there, or will not come.
  void AwaitSuccessors();
  const cluster::Pod* FindSuccessor(const Place& place) const;
  bool CountsAsSuccessor(const Place& place, const cluster::Pod& pod) const;
  Time WaitsUntil(const Place& place);
  void ReleasePlaces();
  // Whether it is written what those that are released now were of use for.
  bool TellOf(Place& place);
  void SeeWhetherEmpty(Moving& moving);
  // Nodes that pods have moved away from take pods again.
  void ReopenNodes();
  Time ReopensAt(const MovesAway& mark, const std::set<std::string_view>& homeless);
  void Forget();

  // Not all of it may be seen yet.
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
  const reconcile::View& view_;
  kube::Client& client_;
  const Time now_;
  std::map<std::string, RelocationMemory>& memory_;
  std::vector<RelocationNote>& notes_;
  MovingScene scene_;
  std::map<std::string, std::string> claimed_;  // by uid of a moved pod: the relocation
  std::vector<Place*> waiting_;                 // for successors
  std::vector<Release> released_;
  std::set<std::string> gone_;      // placeholders deleted now, by key
  std::set<std::string> moved_;     // uids of all pods that have placeholders
  std::set<std::string> taken_up_;  // uids of successors that were counted now
  Status error_;
  std::optional<Time> due_;
};

}  // namespace nos::controllers
