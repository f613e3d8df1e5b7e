// GPUs that are used in more ways than one: cut by MIG, given whole, or given to several pods in
// turn (time slices). One at a time: an instance of one kind excludes those of the others.
//
//   const Model* model = catalogue.FindModes("H100-80GB+GPU+TIME-4");
//   model->FindProfile("nvidia.com/gpu");         // the whole GPU
//   model->FindProfile("nvidia.com/gpu.shared");  // a quarter of its time
//
// The name says what there is: a model of the catalogue, or GPU-<GiB>GB for a GPU without MIG, then
// GPU if it is given whole, and TIME-<n> if n pods may share it: 2 to as many as it has compute
// slices, or kMostTimeSlices where there is no MIG. GPU-<GiB>GB-<slots> is a board whose MIG mode
// is off and stays so: its time slices begin where they do when it may be cut. Such a model has a
// layout table like any other, so that whoever plans, places or draws needs to know no more.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "gpu/catalogue.h"

namespace nos::gpu {

// What pods ask for, as NVIDIA's device plugin names it (with renameByDefault for the second).
inline constexpr std::string_view kWholeGpu = "nvidia.com/gpu";
inline constexpr std::string_view kTimeSlice = "nvidia.com/gpu.shared";
// Whether it is one of those two, and no instance of MIG.
bool IsPlain(const Profile& profile);
inline constexpr int kMostTimeSlices = 7;
inline constexpr int kMostModesGib = 4096;  // of one GPU; more are not believed

struct Modes {
  const Model* mig =
      nullptr;         // of the catalogue; null: the board has no MIG, or it is switched off
  int memory_gib = 0;  // of the whole GPU, where mig is null
  bool whole = false;
  int time_slices = 0;  // 0: none
  // Where mig is null: of the board in MIG mode, if those are fewer than a GPU without MIG counts.
  int slots = 0;
};
// A GPU without MIG has so many.
inline constexpr int kPlainSlots = 8;
// That it may have.
int MostTimeSlices(const Modes& modes);
// Of what FindModes finds by it. What there cannot be is left out.
std::string NameOf(const Modes& modes);

// The models that have been asked for. Thread-safe.
class ModesBook {
 public:
  // Null: there is no such, or there are too many already.
  const Model* Find(const Catalogue& catalogue, std::string_view name);

 private:
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<const Model>, std::less<>> models_;
};

}  // namespace nos::gpu
