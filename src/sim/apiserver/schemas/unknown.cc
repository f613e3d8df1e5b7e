#include "sim/apiserver/schemas/unknown.h"

#include <fmt/format.h>

#include <algorithm>

#include "codec/duplicate_keys.h"
#include "sim/apiserver/schemas/custom_schema.h"
#include "sim/apiserver/schemas/fields.h"

namespace nos::sim {
namespace {

using Shape = FieldRule::Shape;

// Whole objects have apiVersion and kind, including objects nested in others (the claims of a
// StatefulSet).
bool NamesItsKind(const Message& message, const std::string& path) {
  return path.empty() || message.name == "PersistentVolumeClaim";
}

void PruneMessage(const Message& message, Json& value, const std::string& path,
                  std::vector<std::string>& unknown);

void PruneField(const FieldRule& rule, Json& value, const std::string& path,
                std::vector<std::string>& unknown) {
  if (rule.shape == Shape::kOne) return PruneMessage(*rule.message, value, path, unknown);
  if (rule.shape == Shape::kMap && value.is_object()) {
    for (auto& [key, entry] : value.get_object()) {
      const std::string at = fmt::format("{}[{}]", path, std::string_view(key));
      PruneMessage(*rule.message, entry, at, unknown);
    }
  }
  if (rule.shape != Shape::kList || !value.is_array()) return;
  for (size_t i = 0; i < value.get_array().size(); ++i) {
    PruneMessage(*rule.message, value.get_array()[i], fmt::format("{}[{}]", path, i), unknown);
  }
}

void PruneMessage(const Message& message, Json& value, const std::string& path,
                  std::vector<std::string>& unknown) {
  if (!value.is_object()) return;  // null
  const auto inside = [&](std::string_view name) {
    return path.empty() ? std::string(name) : fmt::format("{}.{}", path, name);
  };
  std::vector<std::string> gone;
  for (auto& [key, member] : value.get_object()) {
    const std::string_view name(key.data(), key.size());
    const auto rule = message.by_name.find(name);
    if (rule == message.by_name.end()) {
      const bool is_kind = name == "apiVersion" || name == "kind";
      if (!is_kind || !NamesItsKind(message, path)) gone.emplace_back(name);
    } else if (rule->second->message != nullptr && !member.is_null()) {
      PruneField(*rule->second, member, inside(name), unknown);
    }
  }
  for (const std::string& name : gone) {
    if (unknown.size() < kMaxUnknownReported) unknown.push_back(inside(name));
    value.get_object().erase(name);
  }
}

}  // namespace

std::string Truncated(std::string_view path) {
  size_t size = std::min(path.size(), kMaxPathReported);
  const auto continues = [&] { return (static_cast<unsigned char>(path[size]) & 0xc0) == 0x80; };
  while (size > 0 && size < path.size() && continues()) --size;
  return std::string(path.substr(0, size)) + (size < path.size() ? "..." : "");
}

std::vector<std::string> PruneUnknown(const ResourceType& type, Json& object) {
  std::vector<std::string> unknown;
  if (const Message* message = MessageOf(type)) {
    PruneMessage(*message, object, "", unknown);
  } else {
    if (Json* metadata = object.get_object().if_contains("metadata")) {
      PruneMessage(*FindMessage("ObjectMeta"), *metadata, "metadata", unknown);
    }
    Prune(type.custom->schema, object, unknown);
  }
  for (std::string& path : unknown) path = Truncated(path);
  return unknown;
}

std::vector<std::string> DuplicateKeys(std::string_view text) {
  std::vector<std::string> keys = FindDuplicateKeys(text, kMaxUnknownReported);
  for (std::string& path : keys) path = Truncated(path);
  return keys;
}

}  // namespace nos::sim
