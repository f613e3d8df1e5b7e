// The pod that holds the place of one that is to be moved: it asks for the same, on the node where
// that shall run.
//
//   NOS_ASSIGN(Json pod, MakePlaceholder(config, what, 0, *move.pod));
//   NOS_ASSIGN(const PlaceFor what, ReadPlaceFor(annotation));
//
// Pure functions of values.
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

// Of one relocation; with more moves it is not begun, and what claims to have more is called off.
inline constexpr int kMostMovesAtOnce = 200;

// What a placeholder says of itself (kPlaceFor).
struct PlaceFor {
  std::string id;        // of the relocation
  int of = 0;            // placeholders that it was begun with
  std::string pod, uid;  // that it is for: "ns/name"
  std::string owner;     // uid of its controller; "": it has none
  std::string from, to;  // nodes
  std::string for_pod;   // "ns/name"; "": a node is emptied
  Time since{};
  // Since when all places of the relocation are held. Evictions begin when all placeholders have
  // this.
  std::optional<Time> held;
  // Uids of pods of this relocation whose placeholders have done their duty and are gone.
  std::vector<std::string> ended;
  // Uids of successors that other placeholders were given up for.
  std::vector<std::string> counted;
};

std::string WritePlaceFor(const PlaceFor& what);
// Error: kInvalid with the member that is wrong.
Result<PlaceFor> ReadPlaceFor(std::string_view text);

// "place-r-7k2-0"
std::string NameOfPlaceholder(std::string_view id, int number);
// Whether it may be part of that name, and a label's value.
bool IsRelocationId(std::string_view id);

// Error: kInvalid when no pod can hold the place of this one (it claims devices of DRA).
Result<Json> MakePlaceholder(const RelocationConfig& config, const PlaceFor& what, int number,
                             const cluster::Pod& pod);
// Whether the placeholder asks for all that the pod does, which may have been resized meanwhile.
bool AsksForAsMuch(const cluster::Pod& placeholder, const cluster::Pod& pod);

// Null: it has none.
const cluster::OwnerReference* ControllerOf(const cluster::Pod& pod);

}  // namespace nos::controllers
