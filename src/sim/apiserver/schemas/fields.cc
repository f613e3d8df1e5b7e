#include "sim/apiserver/schemas/fields.h"

#include "base/text.h"

namespace nos::sim {
namespace {

using Schema = std::map<std::string_view, Message>;
using Shape = FieldRule::Shape;

FieldRule ParseRule(std::string_view name, std::string_view type) {
  FieldRule rule{name, type, Shape::kOne};
  if (type.starts_with('*')) rule.shape = Shape::kList;
  if (type.starts_with('%')) rule.shape = Shape::kMap;
  if (type.starts_with('^')) rule.shape = Shape::kInline;
  rule.always = type.starts_with('!');
  if (rule.shape != Shape::kOne || rule.always) rule.type.remove_prefix(1);
  return rule;
}

Schema ParseMessages() {
  Schema schema;
  Message* message = nullptr;
  for (const std::string_view line : Split(kWireSchema, '\n')) {
    bool first = !line.starts_with(' ');
    for (const std::string_view word : Split(line, ' ')) {
      if (word.empty()) continue;
      if (std::exchange(first, false)) {
        message = &schema[word];
        message->name = word;
        continue;
      }
      const auto parts = Split(word, ':');
      const auto number = static_cast<uint64_t>(ParseInt(parts[0]).value_or(0));
      message->by_number[number] = ParseRule(parts[1], parts[2]);
    }
  }
  return schema;
}

void IndexNames(const Message& message, std::map<std::string_view, const FieldRule*>& names) {
  for (const auto& [number, rule] : message.by_number) {
    if (rule.shape == Shape::kInline) {
      IndexNames(*rule.message, names);
    } else {
      names[rule.name] = &rule;
    }
  }
}

Schema ParseSchema() {
  Schema schema = ParseMessages();
  for (auto& [name, message] : schema) {
    for (auto& [number, rule] : message.by_number) {
      const auto found = schema.find(rule.type);
      if (found != schema.end()) rule.message = &found->second;
    }
  }
  for (auto& [name, message] : schema) {
    IndexNames(message, message.by_name);
    for (const auto& [field, rule] : message.by_name) {
      if (rule->always) message.always.push_back(rule);
    }
  }
  return schema;
}

}  // namespace

const Message* FindMessage(std::string_view name) {
  static const Schema schema = ParseSchema();
  const auto found = schema.find(name);
  return found == schema.end() ? nullptr : &found->second;
}

const Message* MessageOf(const ResourceType& type) {
  if (type.custom != nullptr) return nullptr;
  return FindMessage(type.group == "events.k8s.io" ? "EventsEvent" : std::string_view(type.kind));
}

}  // namespace nos::sim
