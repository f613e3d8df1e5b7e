#include "cluster/annotations/reported.h"

#include <fmt/core.h>

#include "base/text.h"
#include "cluster/annotations.h"
#include "cluster/resources.h"

namespace nos::cluster {
namespace {

std::string_view FamilyName(Family family) { return family == Family::kSpec ? "spec-" : "status-"; }

bool TakePrefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

std::optional<int> ParseIndex(std::string_view text) {
  const auto index = ParseInt(text);
  if (!index || *index < 0 || *index >= kMaxGpusPerNode) return std::nullopt;
  return static_cast<int>(*index);
}

// Parses "0-1g.5gb" or, in a status, "0-1g.5gb-free". The profile itself may contain dashes.
std::optional<AnnotationKey> ParseCountKey(std::string_view text, Family family) {
  AnnotationKey key{AnnotationKey::Kind::kCount, 0, {}, false};
  if (family == Family::kStatus) {
    const size_t dash = text.rfind('-');
    if (dash == std::string_view::npos) return std::nullopt;
    const std::string state = ToLower(text.substr(dash + 1));
    if (state != "free" && state != "used" && state != "unknown") return std::nullopt;
    key.used = state != "free";
    text = text.substr(0, dash);
  }
  const size_t dash = text.find('-');
  if (dash == std::string_view::npos || dash + 1 == text.size()) return std::nullopt;
  const auto index = ParseIndex(text.substr(0, dash));
  if (!index) return std::nullopt;
  key.gpu = *index;
  key.profile = text.substr(dash + 1);
  return key;
}

// The GPU index in the tail of a malformed key such as "gpu-0-3g.20gb-in-use". nullopt if the key
// may belong to any GPU. An index out of range is returned as written.
std::optional<int64_t> GpuOfMalformed(std::string_view tail, Family family) {
  TakePrefix(tail, FamilyName(family));
  tail.remove_prefix(tail.find('-') + 1);  // IsGpuAnnotation guarantees a '-'
  return ParseInt(tail.substr(0, tail.find('-')));
}

void AddMalformed(std::string_view name, std::string_view tail, Family family, Reported& to) {
  to.problems.push_back(fmt::format("annotation {}: the key is malformed", name));
  if (tail.starts_with("status-holders-")) return;  // holders are optional information
  const auto gpu = GpuOfMalformed(tail, family);
  if (!gpu) {
    to.stray = true;
  } else if (*gpu >= 0 && *gpu < kMaxGpusPerNode) {
    to.gpus[static_cast<int>(*gpu)].damaged = true;
  }
}

void AddCount(const AnnotationKey& key, std::string_view name, std::string_view value,
              Reported& to) {
  const std::optional<int> count = ParseCount(value);
  if (!count) {
    to.problems.push_back(
        fmt::format("annotation {}: '{}' is not a count from 0 to 1000", name, value));
    to.gpus[key.gpu].damaged = true;
    return;
  }
  InstanceCounts& counts = to.gpus[key.gpu].counts[key.profile];
  (key.used ? counts.used : counts.free) += *count;
}

void AddAnnotation(std::string_view name, std::string_view tail, std::string_view value,
                   Family family, Reported& to) {
  if (!IsGpuAnnotation(tail, family)) return;
  const auto key = ParseAnnotationKey(tail, family);
  if (!key) {
    AddMalformed(name, tail, family, to);
  } else if (key->kind == AnnotationKey::Kind::kLayout) {
    to.gpus[key->gpu].layout = value;
  } else if (key->kind == AnnotationKey::Kind::kModel) {
    to.gpus[key->gpu].model = Trim(value);
  } else if (key->kind == AnnotationKey::Kind::kOtherModel) {
    to.gpus[key->gpu].other_model = Trim(value);
  } else if (key->kind == AnnotationKey::Kind::kHolders) {
    to.gpus[key->gpu].holders = value;
  } else {
    AddCount(*key, name, value, to);
  }
}

Reported ReadPrefix(const Node& node, std::string_view prefix, Family family) {
  Reported reported;
  const StringMap& all = node.meta.annotations;
  const std::string start = fmt::format("{}{}", prefix, FamilyName(family));
  for (auto it = all.lower_bound(start); it != all.end() && it->first.starts_with(start); ++it) {
    const std::string_view name = it->first;
    AddAnnotation(name, name.substr(prefix.size()), it->second, family, reported);
  }
  return reported;
}

}  // namespace

bool IsGpuAnnotation(std::string_view text, Family family) {
  return TakePrefix(text, FamilyName(family)) &&
         (text.starts_with("gpu-") || text.starts_with("layout-") || text.starts_with("model-") ||
          text.starts_with("other-model-") || text.starts_with("holders-"));
}

std::optional<int> ParseCount(std::string_view value) {
  const auto count = ParseInt(Trim(value));
  if (!count || *count < 0 || *count > 1000) return std::nullopt;
  return static_cast<int>(*count);
}

std::optional<int64_t> ParsePlanId(std::string_view value) {
  const auto id = ParseInt(value);
  return id && *id >= 0 && *id <= kMaxPlanId ? id : std::nullopt;
}

std::optional<AnnotationKey> ParseAnnotationKey(std::string_view text, Family family) {
  if (!TakePrefix(text, FamilyName(family))) return std::nullopt;
  if (TakePrefix(text, "gpu-")) return ParseCountKey(text, family);
  AnnotationKey key;
  if (TakePrefix(text, "layout-")) {
    key.kind = AnnotationKey::Kind::kLayout;
  } else if (TakePrefix(text, "model-")) {
    key.kind = AnnotationKey::Kind::kModel;
  } else if (TakePrefix(text, "other-model-")) {
    key.kind = AnnotationKey::Kind::kOtherModel;
  } else if (TakePrefix(text, "holders-")) {
    key.kind = AnnotationKey::Kind::kHolders;
  } else {
    return std::nullopt;
  }
  const auto index = ParseIndex(text);
  if (!index) return std::nullopt;
  key.gpu = *index;
  return key;
}

Reported ReadReported(const Node& node, Family family) {
  Reported reported = ReadPrefix(node, kPrefix, family);
  Reported old = ReadPrefix(node, kOldPrefix, family);
  reported.gpus.merge(old.gpus);  // merge() keeps existing entries
  reported.stray |= old.stray;
  reported.problems.insert(reported.problems.end(), old.problems.begin(), old.problems.end());
  return reported;
}

std::string_view ProfileKey(const gpu::Profile& profile) {
  std::string_view key = profile.resource_name;
  return TakePrefix(key, kMigResourcePrefix) ? key : profile.name;
}

std::optional<gpu::ProfileId> FindProfileByKey(const gpu::Model& model, std::string_view key) {
  if (const auto profile = model.FindProfile(key)) return profile;
  return model.FindProfile(std::string(kMigResourcePrefix) + std::string(key));
}

}  // namespace nos::cluster
