// GPUs of a fault simulation whose calls do not return: for a while, or until the end of the faults
// that this class makes. Some hang in a read, others in a change, which takes effect when they are
// released.
//
//   LostDevices lost(world, seed);
//   lost.Start(faults_end, until);   // the controllers run
//   ...
//   world.RunUntil(until);           // the GPUs that hang for good hang until then
//
// At most half of the GPUs hang for good.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "sim/world.h"

namespace nos::sim {

class LostDevices {
 public:
  LostDevices(World& world, uint64_t seed) : world_(world), random_(seed) {}

  // GPUs begin to hang until `last`, and all are released at `until`.
  void Start(Time last, Time until);
  // Problems after all GPUs were released: conditions of nodes that still name one.
  std::vector<std::string> Leftovers() const;
  // Number of hangs that agents have met, on the machines that exist.
  int hangs() const;

 private:
  void Lose(Time last, Time until);
  void Release(const std::string& node, int gpu);
  void DisarmAll();
  void ReleaseAll();
  // A node that its agent manages, and one of its GPUs.
  std::optional<std::pair<std::string, int>> DrawGpu();

  World& world_;
  Random random_;
  size_t for_good_ = 0;
};

}  // namespace nos::sim
