// The GPU annotations of one family (spec or status), grouped by GPU but not yet interpreted: which
// profiles exist and which layouts are legal is the model's business. Internal to this room.
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
  std::string_view profile;  // of a count
  bool used = false;         // of a status count
};

// What follows the prefix: "status-gpu-0-1g.5gb-free", "spec-layout-3". Nothing when malformed.
std::optional<AnnotationKey> ParseAnnotationKey(std::string_view text, Family family);
// Whether it is meant as a GPU annotation of the family, well-formed or not.
bool IsGpuAnnotation(std::string_view text, Family family);

// The value of a plan annotation. Nothing when it is none.
std::optional<int64_t> ParsePlanId(std::string_view value);
// The value of a count annotation. Nothing when it is none.
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
  bool damaged = false;  // an annotation of it cannot be read: the rest is not the whole story
};

struct Reported {
  std::map<int, ReportedGpu> gpus;
  bool stray = false;                 // an annotation that cannot be read may be of any GPU
  std::vector<std::string> problems;  // malformed annotations, as sentences
};

Reported ReadReported(const Node& node, Family family);

// "1g.5gb.me" for the profile 1g.5gb+me; and back, also by canonical name and alias.
std::string_view ProfileKey(const gpu::Profile& profile);
std::optional<gpu::ProfileId> FindProfileByKey(const gpu::Model& model, std::string_view key);

}  // namespace nos::cluster
