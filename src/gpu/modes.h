// GPUs that are used in more ways than one: cut by MIG, given whole, or given to several pods in
// turn (time slices). One at a time: an instance of one kind excludes those of the others.
//
//   const Model* model = catalogue.FindModes("H100-80GB+GPU+TIME-4");
//   model->FindProfile("nvidia.com/gpu");         // the whole GPU
//   model->FindProfile("nvidia.com/gpu.shared");  // a quarter of its time
//
// Instances of MIG may be divided into equal parts by MPS (device/mig_parts.h): 3g.40gb.mps4 is a
// quarter of a 3g.40gb.
//
// The name says what there is: a model of the catalogue, or GPU-<GiB>GB for a GPU without MIG, then
// the parts, by profile and number, GPU if it is given whole, and TIME-<n> if n pods may share it:
// 2 to as many as it has compute slices, or kMostTimeSlices where there is no MIG.
// GPU-<GiB>GB-<slots> is a board whose MIG mode is off and stays so: its time slices begin where
// they do when it may be cut. Such a model has a layout table like any other, so that whoever
// plans, places or draws needs to know no more. What no table can hold there is not.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/catalogue.h"

namespace nos::gpu {

// What pods ask for, as NVIDIA's device plugin names it (with renameByDefault for the second).
inline constexpr std::string_view kWholeGpu = "nvidia.com/gpu";
inline constexpr std::string_view kTimeSlice = "nvidia.com/gpu.shared";
// Whether it is one of those two, and no instance of MIG.
bool IsPlain(const Profile& profile);
inline constexpr int kMostTimeSlices = 7;
inline constexpr int kMostModesGib = 4096;  // of one GPU; more are not believed

// One of `count` equal parts of an instance, which has as many slots at least.
struct InstancePart {
  std::string profile;  // "3g.40gb"
  int count = 0;        // from 2
  friend bool operator==(const InstancePart&, const InstancePart&) = default;
};
inline constexpr int kMostParts = 8;             // of an instance: none has more slots
std::string PartName(const InstancePart& part);  // "3g.40gb.mps4"
// Nothing when it is none's name, however close: one has one spelling.
std::optional<InstancePart> ParsePartName(std::string_view name);
// Whether it is "nvidia.com/mig-3g.40gb.mps4" or the like.
bool IsPartResource(std::string_view resource);
// "3g.40gb.mps4,2g.20gb.mps2", with or without spaces. Error: kInvalid: which of them is wrong.
Result<std::vector<InstancePart>> ParseParts(std::string_view text);
// Whether instances of the model can be divided so. Parts are told apart by their start, so there
// cannot be more of them than slots from one instance to the next.
bool CanHaveParts(const Model& model, const InstancePart& part);

struct Modes {
  const Model* mig =
      nullptr;         // of the catalogue; null: the board has no MIG, or it is switched off
  int memory_gib = 0;  // of the whole GPU, where mig is null
  bool whole = false;
  int time_slices = 0;  // 0: none
  // Where mig is null: of the board in MIG mode, if those are fewer than a GPU without MIG counts.
  int slots = 0;
  std::vector<InstancePart> parts{};
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
  // Null: there is no such, or there are too many already, or too large ones together.
  const Model* Find(const Catalogue& catalogue, std::string_view name);

 private:
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<const Model>, std::less<>> models_;
  struct Made {
    size_t models = 0, layouts = 0;
  };
  // GPUs of no known board, boards of the catalogue as they are, and those with divided instances:
  // who tells of ever new ones of a kind leaves room for the others.
  Made plain_, boards_, divided_;
};

}  // namespace nos::gpu
