// GPU models with several sharing modes: partitioned by MIG, assigned whole, or shared in time
// slices. The modes exclude each other: instances of different modes never coexist on a GPU.
//
//   const Model* model = catalogue.FindSharingModes("H100-80GB+GPU+TIME-4");
//   model->FindProfile("nvidia.com/gpu");         // the whole GPU
//   model->FindProfile("nvidia.com/gpu.shared");  // a quarter of its time
//
// MPS may divide a MIG instance into equal parts (device/mig_parts.h): 3g.40gb.mps4 is a quarter of
// a 3g.40gb.
//
// The name lists the modes in this order: a model of the catalogue, or GPU-<GiB>GB for a GPU
// without MIG; the parts, by profile and count; GPU if it can be assigned whole; TIME-<n> if n pods
// can share it. n is 2 to the number of compute slices, or 2 to kMaxTimeSlices without MIG.
// GPU-<GiB>GB-<slots> is a MIG-capable GPU whose MIG mode is off and stays off. Its time slices
// start at the same slots as with MIG mode on. Such a model has a layout table like a MIG model, so
// planner, scheduler and dashboard treat both alike. Combinations that exceed the limits of a
// layout table are not supported.
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

// The resource names of NVIDIA's device plugin (the second with `renameByDefault`).
inline constexpr std::string_view kWholeGpu = "nvidia.com/gpu";
inline constexpr std::string_view kTimeSlice = "nvidia.com/gpu.shared";
// True if the profile is one of those two, not a MIG instance.
bool IsPlain(const Profile& profile);
inline constexpr int kMaxTimeSlices = 7;
inline constexpr int kMaxModesGib = 4096;  // of one GPU; larger values are rejected

// One of `count` equal parts of an instance that has at least as many slots.
struct InstancePart {
  std::string profile;  // "3g.40gb"
  int count = 0;        // at least 2
  friend bool operator==(const InstancePart&, const InstancePart&) = default;
};
inline constexpr int kMaxParts = 8;              // per instance: no instance has more slots
std::string PartName(const InstancePart& part);  // "3g.40gb.mps4"
// nullopt if the text is not the canonical spelling of a part's name.
std::optional<InstancePart> ParsePartName(std::string_view name);
// True if the resource names a part, such as "nvidia.com/mig-3g.40gb.mps4".
bool IsPartResource(std::string_view resource);
// Parses "3g.40gb.mps4,2g.20gb.mps2", with or without spaces. Error: kInvalid, naming the invalid
// part.
Result<std::vector<InstancePart>> ParseParts(std::string_view text);
// True if instances of the model can be divided like this. The start identifies a part, so the
// parts cannot outnumber the slots between two instances.
bool CanHaveParts(const Model& model, const InstancePart& part);

struct SharingModes {
  const Model* mig = nullptr;  // in the catalogue; null: the GPU has no MIG, or MIG is disabled
  int memory_gib = 0;          // of the whole GPU, if mig is null
  bool whole = false;
  int time_slices = 0;  // 0: none
  // If mig is null: the slots of the GPU in MIG mode, if fewer than kPlainSlots.
  int slots = 0;
  std::vector<InstancePart> parts{};
};
// Slots of a GPU without MIG.
inline constexpr int kPlainSlots = 8;
// Maximum number of time slices.
int MostTimeSlices(const SharingModes& modes);
// The name under which FindSharingModes finds it. Unsupported parts are left out.
std::string NameOf(const SharingModes& modes);

// Builds models on first use and keeps them. Thread-safe.
class SharingModeBook {
 public:
  // Null if no such model exists, or if the limits on number or total size of models are reached.
  const Model* Find(const Catalogue& catalogue, std::string_view name);

 private:
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<const Model>, std::less<>> models_;
  struct Made {
    size_t models = 0, layouts = 0;
  };
  // Limits apply to each of three kinds: GPUs outside the catalogue, GPUs of the catalogue, and
  // GPUs with divided instances. Nodes that report many names of one kind do not use up the limits
  // of the others.
  Made plain_, boards_, divided_;
};

}  // namespace nos::gpu
