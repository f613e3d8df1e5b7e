// The GPU models nos knows: profiles, placements, memory, compute, and how sure each fact is.
//
// Built in as a data file (catalogue.yaml beside this header); the user's file replaces it, extends
// it, or removes profiles and geometries from a model. On a node with a GPU, NVML's answers win;
// the catalogue serves where there is none: planner, simulator, tests.
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

// How a fact is known. Ordered from the surest.
enum class Confidence { kLive, kTranscript, kInferred, kUnsourced };
std::string_view ConfidenceName(Confidence confidence);

struct Engines {
  uint16_t copy = 0, decode = 0, encode = 0, jpeg = 0, ofa = 0;
};

struct Profile {
  std::string name;  // canonical, as NVML and the device plugin name it: "1g.5gb+me"
  std::vector<std::string> aliases;  // other names drivers and older files use: "7g.79gb"
  int nvml_id = -1;                  // nvmlGpuInstanceProfileInfo_t.id; -1 unknown
  int nvml_enum = -1;                // NVML_GPU_INSTANCE_PROFILE_*; -1 unknown
  int memory_mib = 0;
  int compute = 0;  // compute slices (the g of the name)
  int slots = 0;    // placement slots
  int max_count = 0;
  int multiprocessors = 0;  // 0 unknown
  std::vector<uint8_t> starts;
  Engines engines;
  Confidence facts = Confidence::kUnsourced;       // sizes, counts, memory
  Confidence placements = Confidence::kUnsourced;  // starts
  // The extended resource a pod asks for: "nvidia.com/mig-1g.5gb" ('+' becomes '.': mig-1g.5gb.me).
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
  // Whether instances lie anywhere and fit while there are slots and fewer than most_instances()
  // (gpu/shares.h). Otherwise layouts() says what fits.
  bool counted() const { return layouts_ == nullptr; }
  int most_instances() const { return most_instances_; }
  // Models of equal shape share one table, so its address may key further tables. REQUIRES:
  // !counted().
  const LayoutTable& layouts() const { return *layouts_; }
  // What the table was built of. REQUIRES: !counted().
  const ModelShape& shape() const { return *shape_; }
  const std::vector<uint32_t>& pci_ids() const { return pci_ids_; }

  // By canonical name, alias, either with '.' for '+' ("1g.5gb.me"), or resource name; exactly.
  // Resources are named canonically only: an agent offers no device under an alias.
  std::optional<ProfileId> FindProfile(std::string_view name) const;
  // Whether a GPU may hold it at all: a user's list of geometries may name it nowhere.
  bool Allows(ProfileId id) const {
    return counted() || layouts_->Copies(LayoutTable::kEmpty, id) > 0;
  }
  // Of a part of an instance (gpu/modes.h) the instance's profile; nothing: it is no part.
  std::optional<ProfileId> PartOf(ProfileId id) const {
    if (counted() || shape_->profiles[id].part_of == ProfileShape::kNotDivided) return std::nullopt;
    return shape_->profiles[id].part_of;
  }
  // "3g.20gb@4".
  std::string PlacementName(Placement placement) const;
  // Error: kInvalid: unknown profile, or a start the profile does not have.
  Result<Placement> ParsePlacement(std::string_view text) const;

 private:
  friend class CatalogueBuilder;
  friend std::unique_ptr<const Model> BuildCounted(struct CountedSpec spec);
  friend class ModesBuilder;
  bool IsPlace(Placement placement) const;

  std::string name_, architecture_;
  int memory_gib_ = 0, compute_slices_ = 0, slots_ = 0;
  int most_instances_ = 0;  // of a counted model
  std::vector<uint32_t> pci_ids_;
  std::vector<Profile> profiles_;
  std::map<std::string, ProfileId, std::less<>> profile_by_name_;
  std::shared_ptr<const ModelShape> shape_;
  std::shared_ptr<const LayoutTable> layouts_;
};

class ModesBook;

class Catalogue {
 public:
  static const Catalogue& Builtin();
  // The built-in catalogue changed by a user's file (format: docs/catalogue.md). An entry that is
  // wrong is left out and named in problems(); the others count.
  // Error: kInvalid when the text as a whole is not a catalogue file.
  static Result<Catalogue> Load(std::string_view user_yaml);

  // What was wrong in the user's file: the entry, the field and what to do. Empty for Builtin().
  const std::vector<std::string>& problems() const { return problems_; }
  const std::vector<std::unique_ptr<const Model>>& models() const { return models_; }
  // Ignores case.
  const Model* FindByName(std::string_view name) const;
  // By the name of a GPU that is used in several ways (gpu/modes.h): "H100-80GB+GPU+TIME-4". Null:
  // there is no such.
  const Model* FindModes(std::string_view name) const;
  // By the product name as NVML ("NVIDIA A100-SXM4-40GB") or GPU feature discovery
  // ("NVIDIA-A100-SXM4-40GB", with its "-MIG-1g.5gb" and "-SHARED" suffixes too) reports it.
  const Model* FindByProduct(std::string_view product) const;
  const Model* FindByPciId(uint32_t device_and_vendor) const;  // 0x20B010DE
  // For a product that FindByProduct does not know: one sentence that says why and what to do.
  std::string WhyUnknown(std::string_view product) const;

 private:
  friend class CatalogueBuilder;
  // A product's words in order, lower case; the most specific pattern that matches wins.
  struct ProductPattern {
    std::vector<std::string> words;
    const Model* model = nullptr;  // null: known, but nobody knows how to partition it
    std::string reason;            // then why
  };
  const ProductPattern* Match(std::string_view product, bool partitionable) const;

  std::vector<std::unique_ptr<const Model>> models_;
  std::vector<ProductPattern> products_;
  std::vector<std::string> problems_;
  std::shared_ptr<ModesBook> modes_;  // made when first asked for
};

}  // namespace nos::gpu
