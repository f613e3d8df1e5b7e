// A placeholder is a pod that holds capacity for a pod to be moved: it has the same requests and
// runs on the new node.
//
//   NOS_ASSIGN(Json pod, MakePlaceholder(config, what, 0, *move.pod));
//   NOS_ASSIGN(const PlaceFor what, ReadPlaceFor(annotation));
//
// Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "cluster/objects.h"
#include "codec/json.h"
#include "controllers/relocations.h"

namespace nos::controllers {

// Limit of one relocation. A larger one is not started, and annotations that name more are
// rejected.
inline constexpr int kMaxMovesAtOnce = 200;

// Contents of a placeholder's annotation kPlaceFor.
struct PlaceFor {
  std::string id;        // of the relocation
  int of = 0;            // number of placeholders at the start
  std::string pod, uid;  // of the moved pod: "ns/name" and its uid
  std::string owner;     // uid of its controller; empty: none
  std::string from, to;  // nodes
  std::string for_pod;   // "ns/name"; empty: a node is emptied
  Time since{};
  // Since when all places of the relocation are held. Evictions begin when all placeholders have
  // it.
  std::optional<Time> held;
  // Uids of pods of this relocation whose placeholders were deleted after they served.
  std::vector<std::string> ended;
  // Uids of successors for which other placeholders were deleted.
  std::vector<std::string> counted;
};

std::string WritePlaceFor(const PlaceFor& what);
// Error: kInvalid with the name of the wrong member.
Result<PlaceFor> ReadPlaceFor(std::string_view text);

// "place-r-7k2-0"
std::string NameOfPlaceholder(std::string_view id, int number);
// True if the id is valid in that name and in a label value.
bool IsRelocationId(std::string_view id);

// A container that only occupies its resources, within the Restricted level of the Pod Security
// Standards. Empty command: that of the image.
JsonObject HoldingContainer(std::string name, const std::string& image,
                            const std::vector<std::string>& command, Json resources);

// spec.imagePullSecrets
JsonArray PullSecrets(const std::vector<std::string>& names);

// The placeholder is within the Restricted level of the Pod Security Standards, unless the pod has
// host ports. Error: kInvalid if the place of the pod cannot be held, because it uses DRA resource
// claims.
Result<Json> MakePlaceholder(const RelocationConfig& config, const PlaceFor& what, int number,
                             const cluster::Pod& pod);
// True if the placeholder requests at least what the pod does. The pod may have been resized.
bool AsksForAsMuch(const cluster::Pod& placeholder, const cluster::Pod& pod);

// Null: none.
const cluster::OwnerReference* ControllerOf(const cluster::Pod& pod);

}  // namespace nos::controllers
