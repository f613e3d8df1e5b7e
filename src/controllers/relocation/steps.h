// Advances all relocations by one step (controllers/relocations.h).
//
//   RelocationSteps steps(config, view, client, now, memory, notes);
//   return steps.All();
//
// Lives for one call: it reads the relocations from the caches when it is constructed. Notes for
// users are appended to `notes`; `memory` keeps the state that is not in the cluster.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "controllers/relocation/memory.h"
#include "controllers/relocation/outcome.h"
#include "controllers/relocation/preconditions.h"
#include "controllers/relocation/scene.h"

namespace nos::controllers {

class RelocationSteps {
 public:
  // All arguments must outlive this object.
  RelocationSteps(const RelocationConfig& config, const reconcile::Listers& view,
                  kube::Client& client, Time now, RelocationMemories& memory,
                  std::vector<RelocationNote>& notes);

  reconcile::ReconcileResult All();
  // See Relocations::CallOff.
  bool CallOff(const std::string& node, std::string_view why);

 private:
  using Pod = std::shared_ptr<const cluster::Pod>;

  struct Release {
    Place* place;
    std::string successor;  // uid; empty: none
  };

  void ClearWhatIsBad();
  void GoOn(Moving& moving);

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
  bool RecordReleases(Place& place);
  void MarkIfEmpty(Moving& moving);
  void Forget();

  // Neither evicted nor ended.
  bool IsLeft(const Place& place) const { return nos::controllers::IsLeft(place, memory_, now_); }
  bool Write(Place& place, const PlaceFor& what);
  Status Delete(const Place& place);
  static RelocationNote NoteOf(const Moving& moving, RelocationNote::Kind kind);

  const RelocationConfig& config_;
  const reconcile::Listers& view_;
  kube::Client& client_;
  const Time now_;
  RelocationMemories& memory_;
  std::vector<RelocationNote>& notes_;
  MovingScene scene_;
  Preconditions preconditions_;
  std::vector<Place*> waiting_;  // for successors
  std::vector<Release> released_;
  std::set<std::string> gone_;      // keys of placeholders deleted in this call
  std::set<std::string> moved_;     // uids of all pods that have placeholders
  std::set<std::string> taken_up_;  // uids of successors used in this call
  StepOutcome outcome_;
};

}  // namespace nos::controllers
