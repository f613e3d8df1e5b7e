// Builds a Catalogue from model descriptions and changes to them.
//
// A call takes effect completely, or returns kInvalid with the reason and changes nothing. Not
// thread-safe. One builder builds one catalogue.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "gpu/catalogue.h"

namespace nos::gpu {

struct ProfileSpec {
  Profile profile;
  std::vector<std::string> excludes;  // names of profiles that may not coexist with it
};

using Geometry = std::map<std::string, int>;  // profile name -> count

struct ModelSpec {
  std::string name, architecture;
  int memory_gib = 0, compute_slices = 0, slots = 0;
  std::vector<std::string> products;  // words in this order, in any case: "A100 40GB"
  std::vector<uint32_t> pci_ids;
  std::optional<Engines> engine_totals;  // absent: only slots and maximum counts limit instances
  std::vector<ProfileSpec> profiles;
  std::vector<Geometry> allowed, forbidden;
};

// A model whose instances fit anywhere (Model::counted()).
struct CountedSpec {
  std::string name;
  int slots = 0;  // equal to GiB
  int compute_slices = 0, max_instances = 0;
  std::vector<Profile> profiles;
};
std::unique_ptr<const Model> BuildCounted(CountedSpec spec);

class CatalogueBuilder {
 public:
  // Adds the model, or replaces the model with the same name.
  Status Put(ModelSpec spec);
  Status RemoveModel(std::string_view model);
  Status RemoveProfile(std::string_view model, std::string_view profile);
  // No layout of the model may contain these counts of profiles together.
  Status Forbid(std::string_view model, const Geometry& geometry);
  // Each layout of the model must be contained in one of the allowed geometries. Without any, every
  // layout is allowed. `model` is a name or a product. Error: kInvalid, also if the model cannot be
  // partitioned into this geometry.
  Status Allow(std::string_view model, const Geometry& geometry);
  // The catalogue's name of a model, given by name or product. "" if there is no such model.
  std::string NameOf(std::string_view model);
  void AddUnpartitionable(const std::string& product, std::string reason);
  void AddProblem(std::string problem) { problems_.push_back(std::move(problem)); }
  // Does nothing if the same was added before.
  void AddIgnored(IgnoredGeometry geometry);

  Catalogue Build() &&;

 private:
  struct SharedTable {
    std::shared_ptr<const ModelShape> shape;
    std::shared_ptr<const LayoutTable> table;
  };
  ModelSpec* Find(std::string_view name);
  ModelSpec* FindByProduct(std::string_view product);
  ModelSpec* FindByNameOrProduct(std::string_view model);
  Result<SharedTable> TableFor(const ModelSpec& spec);
  std::unique_ptr<const Model> BuildModel(const ModelSpec& spec);

  std::vector<ModelSpec> specs_;
  std::vector<std::pair<std::string, std::string>> unpartitionable_;  // product, reason
  std::vector<std::string> problems_;
  std::vector<IgnoredGeometry> ignored_;
  std::vector<SharedTable> tables_;  // one entry per distinct shape
};

}  // namespace nos::gpu
