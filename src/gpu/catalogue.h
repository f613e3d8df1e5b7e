// The GPU models that nos knows: profiles, placements, memory, compute, and how reliable each fact
// is.
//
// The built-in data file is catalogue.yaml in this folder. A user's file replaces models, adds
// models, or removes profiles and geometries from a model. On a node with a GPU the values that
// NVML reports take precedence. The planner, the simulator and the tests have no GPU and use the
// catalogue.
//
//   const gpu::Model* model = gpu::Catalogue::Builtin().FindByProduct("NVIDIA-A100-SXM4-40GB");
//   auto profile = model->FindProfile("3g.20gb");
//
// Immutable after construction; may be read from any thread. Models live as long as the catalogue.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "gpu/layout.h"

namespace nos::gpu {

// The source of a fact. The most reliable one comes first.
enum class Confidence { kLive, kTranscript, kInferred, kUnsourced };
std::string_view ConfidenceName(Confidence confidence);

struct Engines {
  uint16_t copy = 0, decode = 0, encode = 0, jpeg = 0, ofa = 0;
};

struct Profile {
  std::string name;  // canonical, as NVML and the device plugin name it: "1g.5gb+me"
  std::vector<std::string> aliases;  // other names that drivers and older files use: "7g.79gb"
  int nvml_id = -1;                  // nvmlGpuInstanceProfileInfo_t.id; -1 unknown
  int nvml_enum = -1;                // NVML_GPU_INSTANCE_PROFILE_*; -1 unknown
  int memory_mib = 0;
  int compute = 0;  // compute slices (the number before "g" in the name)
  int slots = 0;    // placement slots
  int max_count = 0;
  int multiprocessors = 0;  // 0 unknown
  std::vector<uint8_t> starts;
  Engines engines;
  Confidence facts = Confidence::kUnsourced;       // sizes, counts, memory
  Confidence placements = Confidence::kUnsourced;  // starts
  // The extended resource that pods request: "nvidia.com/mig-1g.5gb" ('+' becomes '.':
  // mig-1g.5gb.me).
  std::string resource_name;
};

class Model {
 public:
  const std::string& name() const { return name_; }  // "A100-40GB": unique in the catalogue
  const std::string& architecture() const { return architecture_; }
  int memory_gib() const { return memory_gib_; }
  int compute_slices() const { return compute_slices_; }
  int slots() const { return slots_; }
  const std::vector<Profile>& profiles() const { return profiles_; }
  const Profile& profile(ProfileId id) const { return profiles_[id]; }
  // True for share models (gpu/shares.h): an instance fits anywhere while slots are free and the
  // GPU has fewer than max_instances(). Otherwise layouts() decides.
  bool counted() const { return layouts_ == nullptr; }
  int max_instances() const { return max_instances_; }
  // Models of equal shape share one table, so callers may use its address as a key. REQUIRES:
  // !counted().
  const LayoutTable& layouts() const { return *layouts_; }
  // The input from which the table was built. REQUIRES: !counted().
  const ModelShape& shape() const { return *shape_; }
  const std::vector<uint32_t>& pci_ids() const { return pci_ids_; }

  // Finds an exact match of the canonical name, an alias, either with '.' for '+' ("1g.5gb.me"), or
  // the resource name. Aliases have no resource name, because the agent advertises devices under
  // their canonical name only.
  std::optional<ProfileId> FindProfile(std::string_view name) const;
  // False if no legal layout contains the profile, for example because the user's allowed
  // geometries do not mention it.
  bool Allows(ProfileId id) const {
    return counted() || layouts_->Copies(LayoutTable::kEmpty, id) > 0;
  }
  // The profile of the instance that a part divides (gpu/modes.h). nullopt if the profile is not a
  // part.
  std::optional<ProfileId> PartOf(ProfileId id) const {
    if (counted() || shape_->profiles[id].part_of == ProfileShape::kNotDivided) return std::nullopt;
    return shape_->profiles[id].part_of;
  }
  // "3g.20gb@4".
  std::string PlacementName(Placement placement) const;
  // Error: kInvalid if the profile is unknown or cannot start at this slot.
  Result<Placement> ParsePlacement(std::string_view text) const;

 private:
  friend class CatalogueBuilder;
  friend std::unique_ptr<const Model> BuildCounted(struct CountedSpec spec);
  friend class ModesBuilder;
  bool IsPlace(Placement placement) const;

  std::string name_, architecture_;
  int memory_gib_ = 0, compute_slices_ = 0, slots_ = 0;
  int max_instances_ = 0;  // only if counted()
  std::vector<uint32_t> pci_ids_;
  std::vector<Profile> profiles_;
  std::map<std::string, ProfileId, std::less<>> profile_by_name_;
  std::shared_ptr<const ModelShape> shape_;
  std::shared_ptr<const LayoutTable> layouts_;
};

class SharingModeBook;

// An entry of a user's list of allowed geometries that has no effect, because no GPU can have it.
struct IgnoredGeometry {
  std::string model;  // name in the catalogue; "" if the catalogue has no such model
  std::string text;   // the entry and the reason

  bool operator==(const IgnoredGeometry&) const = default;
};

class Catalogue {
 public:
  static const Catalogue& Builtin();
  // The built-in catalogue, changed by a user's file (format: docs/catalogue.md). Invalid entries
  // are skipped and reported in problems(); valid entries take effect. Error: kInvalid if the text
  // as a whole is not a catalogue file.
  static Result<Catalogue> Load(std::string_view user_yaml);

  // The invalid entries of the user's file: entry, field and what to do. Empty for Builtin().
  const std::vector<std::string>& problems() const { return problems_; }
  // Allowed geometries of the user's file that no GPU can have. The others take effect.
  const std::vector<IgnoredGeometry>& ignored() const { return ignored_; }
  const std::vector<std::unique_ptr<const Model>>& models() const { return models_; }
  // Ignores case.
  const Model* FindByName(std::string_view name) const;
  // Finds a GPU with several sharing modes by its name (gpu/modes.h): "H100-80GB+GPU+TIME-4". Null
  // if no such model exists.
  const Model* FindSharingModes(std::string_view name) const;
  // Finds a model by the product name that NVML ("NVIDIA A100-SXM4-40GB") or GPU feature discovery
  // ("NVIDIA-A100-SXM4-40GB", also with the suffixes "-MIG-1g.5gb" and "-SHARED") reports.
  const Model* FindByProduct(std::string_view product) const;
  const Model* FindByPciId(uint32_t device_and_vendor) const;  // 0x20B010DE
  // Says in one sentence why FindByProduct does not find the product, and what to do.
  std::string WhyUnknown(std::string_view product) const;

 private:
  friend class CatalogueBuilder;
  // The words of a product's name in order, in lower case. The most specific matching pattern wins.
  struct ProductPattern {
    std::vector<std::string> words;
    const Model* model = nullptr;  // null: a known product without known placements
    std::string reason;            // why `model` is null
  };
  const ProductPattern* Match(std::string_view product, bool partitionable) const;

  std::vector<std::unique_ptr<const Model>> models_;
  std::vector<ProductPattern> products_;
  std::vector<std::string> problems_;
  std::vector<IgnoredGeometry> ignored_;
  std::shared_ptr<SharingModeBook> modes_;  // builds models on first use
};

}  // namespace nos::gpu
