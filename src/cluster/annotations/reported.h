// The GPU annotations of one family (spec or status), grouped by GPU but not interpreted: which
// profiles exist and which layouts are legal depends on the model. Internal to this library.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/objects.h"
#include "gpu/catalogue.h"

namespace nos::cluster {

enum class Family { kSpec, kStatus };

struct AnnotationKey {
  enum class Kind { kCount, kLayout, kModel, kOtherModel, kHolders } kind = Kind::kCount;
  int gpu = 0;
  std::string_view profile;  // for kCount
  bool used = false;         // for kCount in a status
};

// Parses the part of a key after the prefix: "status-gpu-0-1g.5gb-free", "spec-layout-3". nullopt
// if malformed.
std::optional<AnnotationKey> ParseAnnotationKey(std::string_view text, Family family);
// True if the key has the form of a GPU annotation of the family, well-formed or not.
bool IsGpuAnnotation(std::string_view text, Family family);

// The value of a plan annotation; nullopt if it is not a plan id.
std::optional<int64_t> ParsePlanId(std::string_view value);
// The value of a count annotation; nullopt if it is not a count.
std::optional<int> ParseCount(std::string_view value);

struct InstanceCounts {
  int free = 0;
  int used = 0;
};

// Views into the node's annotations.
struct ReportedGpu {
  std::optional<std::string_view> layout;
  std::string_view model, other_model, holders;
  std::map<std::string_view, InstanceCounts> counts;  // by profile as written in the key
  bool damaged = false;  // an annotation of this GPU is unreadable, so the other members are
                         // incomplete
};

struct Reported {
  std::map<int, ReportedGpu> gpus;
  bool stray = false;                 // an unreadable annotation may belong to any GPU
  std::vector<std::string> problems;  // malformed annotations, as sentences
};

Reported ReadReported(const Node& node, Family family);

// ProfileKey returns "1g.5gb.me" for the profile 1g.5gb+me. FindProfileByKey is the inverse and
// also accepts canonical names and aliases.
std::string_view ProfileKey(const gpu::Profile& profile);
std::optional<gpu::ProfileId> FindProfileByKey(const gpu::Model& model, std::string_view key);

}  // namespace nos::cluster
