// Checks whether a relocation can continue: its node and its placeholders are as it has left them,
// its pods can still move where they should, and it is not late.
//
//   Preconditions preconditions(config, view, scene, memory, now);
//   const Finding found = preconditions.Check(moving);   // for each relocation, oldest first
//   if (!found.off.empty()) CallOff(moving, found.off);
//
// A pod is claimed by the first relocation that has it; a later one contradicts it. All arguments
// must outlive the object.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "controllers/relocation/memory.h"
#include "controllers/relocation/scene.h"

namespace nos::controllers {

// The state of a relocation before its next step.
struct Finding {
  std::string off{};          // why it must be called off; empty: it continues
  bool wait = false;          // something is missing, but may not be in the caches yet
  std::optional<Time> due{};  // when the finding may change
};

class Preconditions {
 public:
  Preconditions(const RelocationConfig& config, const reconcile::Listers& view,
                const MovingScene& scene, const RelocationMemories& memory, Time now)
      : config_(config), view_(view), scene_(scene), memory_(memory), now_(now) {}

  Finding Check(const Moving& moving);

 private:
  Finding CheckLost(const Moving& moving);
  Finding CheckMark(const Moving& moving);
  Finding CheckPodsOn(const std::string& node, const Moving& moving);
  Finding CheckPlaces(const Moving& moving);
  std::string WhyContradictory(const Moving& moving) const;
  std::string WhyNoRoomWanted(const Moving& moving) const;
  std::string WhyNotMoved(const Place& place) const;
  std::string WhyTooLate(const Moving& moving);
  // The relocation is so new that the caches may miss parts of it.
  bool IsYoung(const Moving& moving);
  bool AnyIsLeft(const Moving& moving) const;
  void Due(Time time);

  const RelocationConfig& config_;
  const reconcile::Listers& view_;
  const MovingScene& scene_;
  const RelocationMemories& memory_;
  const Time now_;
  std::optional<Time> due_;                        // of the current check
  std::map<std::string, std::string> relocating_;  // by uid of a moved pod: its relocation
};

}  // namespace nos::controllers
